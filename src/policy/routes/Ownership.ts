import { Schema } from "effect"

/** Who may use an object that a key created at the upstream: its project, the key alone, or every key. */
export const Ownership = Schema.Literals(["project", "key", "shared"])
export type Ownership = typeof Ownership.Type

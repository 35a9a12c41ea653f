import { Schema } from "effect"

/** An object that a key creates at the upstream belongs to its project, to the key alone, or to every key. */
export const Ownership = Schema.Literals(["project", "key", "shared"])
export type Ownership = typeof Ownership.Type

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import * as DataDirectory from "../layers/data/DataDirectory.ts"

/** The path of a directory of its own, removed with the scope. */
export const path = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "svc-test-data-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** A data directory of its own. */
export const layer = Layer.unwrap(Effect.map(path, DataDirectory.layer))

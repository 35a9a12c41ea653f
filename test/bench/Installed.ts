import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { promisify } from "node:util"
import { Effect } from "effect"
import { BenchFailed } from "./Child.ts"

/**
 * What a folder's own lock file names, on first use: `file` is there afterwards. No script of any package runs. Not by
 * `npm ci`, which refuses a lock file without the optional packages of platforms that a registry does not have.
 */
export const installed = (folder: string, file: string): Effect.Effect<void, BenchFailed> =>
  Effect.suspend(() =>
    existsSync(file)
      ? Effect.void
      : Effect.tryPromise({
          try: () =>
            promisify(execFile)(
              "npm",
              ["install", "--no-save", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund"],
              {
                timeout: 300_000
              }
            ),
          catch: (cause) =>
            new BenchFailed({
              message: `The packages of ${folder} could not be installed (leave them out with --only): ${String(cause)}`
            })
        })
  )

import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { promisify } from "node:util"
import { Effect } from "effect"
import { BenchFailed, freePort, ready, start } from "./Child.ts"

const folder = "test/bench/portkey"
const program = `${folder}/node_modules/@portkey-ai/gateway/build/start-server.js`

/** From its own lock file, on first use; no script of any package runs. */
const installed = Effect.suspend(() =>
  existsSync(program)
    ? Effect.void
    : Effect.tryPromise({
        try: () =>
          promisify(execFile)("npm", ["ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund"], {
            timeout: 300_000
          }),
        catch: (cause) =>
          new BenchFailed({
            message: `Portkey's gateway could not be installed (leave it out with --only): ${String(cause)}`
          })
      })
)

/** Portkey's gateway as its package starts it, without its console. */
export const make = Effect.gen(function* () {
  yield* installed
  const port = yield* freePort
  const child = yield* start({ name: "portkey", args: [program, `--port=${port}`, "--headless"] })
  const origin = `http://127.0.0.1:${port}`
  yield* ready(child, origin)
  return { child, origin }
})

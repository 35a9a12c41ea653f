import { Effect } from "effect"
import { freePort, ready, start } from "./Child.ts"
import { installed } from "./Installed.ts"

const folder = "test/bench/portkey"
const program = `${folder}/node_modules/@portkey-ai/gateway/build/start-server.js`

/** Portkey's gateway as its package starts it, without its console. */
export const make = Effect.gen(function* () {
  yield* installed(folder, program)
  const port = yield* freePort
  const child = yield* start({ name: "portkey", args: [program, `--port=${port}`, "--headless"] })
  const origin = `http://127.0.0.1:${port}`
  yield* ready(child, origin)
  return { child, origin }
})

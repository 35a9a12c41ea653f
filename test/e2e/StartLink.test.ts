import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { get, type IncomingMessage } from "node:http"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../Eventually.ts"
import * as RunningGateway from "../RunningGateway.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const variables = {
  GATEWAY_BIND_ADDR: "127.0.0.1:0",
  GATEWAY_CONTROL_BIND_ADDR: "127.0.0.1:0",
  SVC_STATUS_BIND_ADDR: "127.0.0.1:0"
}

/** `script` gives the program a terminal, as a person has one. */
const inTerminal = Effect.acquireRelease(
  Effect.sync(() => {
    const child = spawn("script", ["-qefc", `exec ${process.execPath} src/main.ts`, "/dev/null"], {
      cwd: root,
      env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...variables },
      detached: true,
      stdio: ["pipe", "pipe", "inherit"]
    })
    let output = ""
    child.stdout.on("data", (chunk) => {
      output += chunk
    })
    return { child, output: () => output }
  }),
  ({ child }) => Effect.promise(() => end(child))
)

/** The program is in the group of `script`. */
const end = async (child: ChildProcess) => {
  if (child.exitCode !== null || child.pid === undefined) return
  const exited = new Promise((resolve) => child.once("exit", resolve))
  child.stdin?.end("\u0003")
  await exited
}

/** `fetch` writes headers of its own about who fetches. */
const openAsPersonDoes = async (link: string): Promise<IncomingMessage> => {
  const headers = { "sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" }
  const [response] = await once(get(link, { headers }), "response")
  response.resume()
  return response
}

const signInLine = /sign in +(http:\/\/127\.0\.0\.1:\d+\/admin-ui\/session\/link\?code=[\w-]{43})\r?\n/

describe("npm start", () => {
  it.live("prints a link that signs in, in a terminal", () =>
    Effect.gen(function* () {
      const { output } = yield* inTerminal
      const printed = yield* eventually(
        Effect.sync(() => signInLine.exec(output())?.[1]),
        (link) => link !== undefined,
        "60 seconds"
      )
      const { headers } = yield* Effect.promise(() => openAsPersonDoes(printed ?? ""))
      assert.strictEqual(headers.location, "/admin-ui/")
      assert.match(headers["set-cookie"]?.join() ?? "", /^svc_session=/)
    })
  )

  it.live("prints none where the output is a file or a pipe", () =>
    Effect.gen(function* () {
      const { output } = yield* RunningGateway.start({})
      assert.notMatch(output(), /session\/link/)
    })
  )
})

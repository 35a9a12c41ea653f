import { createServer } from "node:http"
import { Effect, type Scope } from "effect"
import { portOf } from "../../upstream/SimulatorServer.ts"
import type { Json } from "./VendorAnswers.ts"

/** The members of a call that tests look at. */
export interface GuardrailCall {
  readonly mode: string
  readonly request: Json | null
  readonly response: Json | null
}

export interface GuardrailServer {
  readonly url: string
  /** Sets the reply to all calls that follow. */
  readonly reply: (reply: (call: GuardrailCall) => Json) => void
  /** The bodies of the calls, oldest first. */
  readonly calls: Array<string>
}

/** An HTTP guardrail on a port of its own. */
export const serve: Effect.Effect<GuardrailServer, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.promise(() => start()),
    ({ server }) =>
      Effect.promise(
        () =>
          new Promise<void>((closed) => {
            server.close(() => closed())
            server.closeAllConnections()
          })
      )
  ),
  ({ server: _, ...guardrail }) => guardrail
)

const start = async () => {
  const calls: Array<string> = []
  let replyTo: (call: GuardrailCall) => Json = () => ({ action: "allow" })
  const server = createServer(async (incoming, response) => {
    const body = Buffer.concat(await Array.fromAsync(incoming)).toString()
    calls.push(body)
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(replyTo(JSON.parse(body))))
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  return {
    server,
    url: `http://127.0.0.1:${portOf(server.address())}/check`,
    calls,
    reply: (reply: (call: GuardrailCall) => Json) => {
      replyTo = reply
    }
  }
}

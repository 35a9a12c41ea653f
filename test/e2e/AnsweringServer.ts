import { createServer } from "node:http"
import { Effect, type Scope } from "effect"
import { portOf } from "../upstream/SimulatorServer.ts"

export interface AnsweringServer {
  readonly origin: string
  /** The `traceparent` of each request. */
  readonly traceparents: ReadonlyArray<string>
}

/** A server that answers everything alike. */
export const make = (status: number, body: string): Effect.Effect<AnsweringServer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const traceparents: Array<string> = []
      const server = createServer((request, response) => {
        traceparents.push(String(request.headers["traceparent"]))
        request.resume().on("end", () => response.writeHead(status, { "content-type": "application/json" }).end(body))
      })
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
      return { server, traceparents, origin: `http://127.0.0.1:${portOf(server.address())}` }
    }),
    ({ server }) =>
      Effect.promise(async () => {
        server.closeAllConnections()
        await new Promise((closed) => server.close(closed))
      })
  )

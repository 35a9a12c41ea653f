import { createServer } from "node:http"
import { Effect } from "effect"
import * as WireNode from "../../layers/http/WireNode.ts"
import type { Wire } from "../../src/gateway/request/Wire.ts"
import { portOf } from "../upstream/SimulatorServer.ts"

/** A gateway's program behind a socket of its own, as the proxy listener serves it; its origin. */
export const origin = (handle: (wire: Wire) => Effect.Effect<unknown>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const server = createServer((incoming, outgoing) => {
          Effect.runFork(handle(WireNode.make(incoming, outgoing)))
        })
        await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
        return server
      }),
      (server) =>
        Effect.promise(async () => {
          server.closeAllConnections()
          await new Promise((closed) => server.close(closed))
        })
    ),
    (server) => `http://127.0.0.1:${portOf(server.address())}`
  )

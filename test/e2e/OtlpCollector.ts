import { createServer, type IncomingHttpHeaders } from "node:http"
import { Effect, type Scope } from "effect"
import { portOf } from "../upstream/SimulatorServer.ts"

/** Takes what processes export, and keeps it as bytes. */
export interface OtlpCollector {
  readonly endpoint: string
  /** Everything that came to `/v1/traces`, `/v1/logs`, `/v1/metrics`. */
  readonly received: (signal: "traces" | "logs" | "metrics") => Buffer
  /** Of every export. */
  readonly headers: ReadonlyArray<IncomingHttpHeaders>
}

export const make: Effect.Effect<OtlpCollector, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const bodies = new Map<string, Array<Buffer>>()
      const headers: Array<IncomingHttpHeaders> = []
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        headers.push(request.headers)
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          bodies.set(request.url ?? "", [...(bodies.get(request.url ?? "") ?? []), ...chunks])
          response.writeHead(200, { "content-type": "application/x-protobuf" }).end()
        })
      })
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
      return { server, bodies, headers, endpoint: `http://127.0.0.1:${portOf(server.address())}` }
    }),
    ({ server }) =>
      Effect.promise(async () => {
        server.closeAllConnections()
        await new Promise((closed) => server.close(closed))
      })
  ),
  ({ bodies, endpoint, headers }) => ({
    endpoint,
    headers,
    received: (signal) => Buffer.concat(bodies.get(`/v1/${signal}`) ?? [])
  })
)

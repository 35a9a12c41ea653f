import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect, type Scope } from "effect"
import { portOf } from "../upstream/SimulatorServer.ts"

/** What a scripted studio, or a service, says to one request. */
export interface Saying {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface StudioServer {
  readonly origin: string
  /** Oldest first. */
  readonly asked: ReadonlyArray<{
    readonly method: string
    readonly url: string
    readonly authorization: string | undefined
  }>
  /** From now on. */
  readonly says: (saying: Saying) => void
}

/** A studio on a port of its own, which says what it was told to say last. */
export const serve = (first: Saying = {}): Effect.Effect<StudioServer, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => start(first)),
      ({ server }) =>
        Effect.promise(
          () =>
            new Promise((closed) => {
              server.closeAllConnections()
              server.close(closed)
            })
        )
    ),
    ({ studio }) => studio
  )

/** JSON, as studios and services send it. */
export const json = (value: unknown): Saying => ({
  headers: { "content-type": "application/json" },
  body: JSON.stringify(value)
})

const start = async (first: Saying) => {
  const asked: Array<StudioServer["asked"][number]> = []
  let saying = first
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const { authorization } = request.headers
    asked.push({ method: request.method ?? "", url: request.url ?? "", authorization })
    response.writeHead(saying.status ?? 200, saying.headers).end(saying.body)
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  const studio: StudioServer = {
    origin: `http://127.0.0.1:${portOf(server.address())}`,
    asked,
    says: (next) => {
      saying = next
    }
  }
  return { server, studio }
}

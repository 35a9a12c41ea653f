import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, type Scope } from "effect"
import type { SimulatedResponse } from "../../layers/simulator/SimulatedResponse.ts"
import { defaultSettings, Simulator, type SimulatorSettings } from "../../layers/simulator/Simulator.ts"

export interface Options extends SimulatorSettings {
  /** Milliseconds between two chunks of a stream. */
  readonly paceMs: number
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** The path of its host that its API begins below. */
  readonly below: string
  /** How many requests are remembered, the newest. */
  readonly recorded: number
}

export interface Recorded {
  readonly method: string
  readonly url: string
  readonly rawHeaders: ReadonlyArray<string>
  readonly body: Buffer
  /** Whether the answer was sent whole; known when the exchange is over on this side. */
  readonly answered: Promise<boolean>
}

export interface SimulatorServer {
  readonly origin: string
  /** Oldest first. */
  readonly requests: ReadonlyArray<Recorded>
}

const defaults: Options = { ...defaultSettings, paceMs: 0, below: "", now: () => Date.now(), recorded: 1_000 }

/** The simulated model proxy as a real HTTP server, on a port of its own. */
export const serve = (options: Partial<Options> = {}): Effect.Effect<SimulatorServer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => start(options)),
    (server) => Effect.promise(() => server.close())
  )

/** The same, for programs that are not Effects. */
export const start = async (
  options: Partial<Options> = {}
): Promise<SimulatorServer & { readonly close: () => Promise<void> }> => {
  const { below, paceMs, now, recorded, ...settings } = { ...defaults, ...options }
  const simulator = new Simulator(settings)
  const requests: Array<Recorded> = []

  const server = createServer((incoming, response) => {
    const chunks: Array<Buffer> = []
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
    incoming.on("end", () => {
      const request = recordOf(incoming, Buffer.concat(chunks), response)
      requests.push(request)
      if (requests.length > recorded) requests.shift()
      const { method, url, rawHeaders: headers, body } = request
      const target = url.startsWith(below) ? url.slice(below.length) : "/beside"
      send(response, simulator.respond({ method, target, headers, body }, now()), paceMs)
    })
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  return {
    origin: `http://127.0.0.1:${portOf(server.address())}`,
    requests,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      })
  }
}

export const portOf = (address: AddressInfo | string | null): number => {
  if (address === null || typeof address === "string") throw new Error("not listening on TCP")
  return address.port
}

const recordOf = (incoming: IncomingMessage, body: Buffer, response: ServerResponse): Recorded => ({
  method: incoming.method ?? "",
  url: incoming.url ?? "",
  rawHeaders: incoming.rawHeaders,
  body,
  answered: new Promise((over) => response.on("close", () => over(response.writableFinished)))
})

const send = (response: ServerResponse, answer: SimulatedResponse, paceMs: number): void => {
  let next = 0
  const step = (): void => {
    if (response.destroyed) return
    const chunk = answer.chunks[next]
    next += 1
    if (chunk === undefined) finish(response, answer)
    else response.write(chunk, () => later(paceMs, step))
  }
  later(answer.delayMs, () => {
    response.writeHead(answer.status, [...answer.headers])
    response.flushHeaders()
    step()
  })
}

const finish = (response: ServerResponse, answer: SimulatedResponse): void => {
  if (answer.ending === "complete") response.end()
  if (answer.ending === "cut") response.destroy()
}

const later = (ms: number, next: () => void): void => {
  if (ms === 0) next()
  else setTimeout(next, ms)
}

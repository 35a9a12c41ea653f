import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, type Scope } from "effect"
import type { SimulatedResponse } from "../../../simulator/SimulatedResponse.ts"
import { defaultSettings, Simulator, type SimulatorSettings } from "../../../simulator/Simulator.ts"

export interface Options extends SimulatorSettings {
  /** Milliseconds between two chunks of a stream. */
  readonly paceMs: number
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** The path below which the API begins. */
  readonly below: string
  /** The number of requests that the server remembers. It forgets older ones. */
  readonly recorded: number
}

export interface Recorded {
  readonly method: string
  readonly url: string
  readonly rawHeaders: ReadonlyArray<string>
  readonly body: Buffer
  /** Resolves at the end of the exchange to whether the response was sent completely. */
  readonly answered: Promise<boolean>
}

export interface SimulatorServer {
  readonly origin: string
  /** Oldest first. */
  readonly requests: ReadonlyArray<Recorded>
}

const defaults: Options = { ...defaultSettings, paceMs: 0, below: "", now: () => Date.now(), recorded: 1_000 }

/** Serves the simulated model API over HTTP, on a port of 127.0.0.1. */
export const serve = (options: Partial<Options> = {}): Effect.Effect<SimulatorServer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => start(options)),
    (server) => Effect.promise(() => server.close())
  )

/** `serve` for programs without Effect. */
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
  let timer: NodeJS.Timeout | undefined
  // A timer of a client that has gone would keep the process alive.
  response.once("close", () => clearTimeout(timer))
  const later = (ms: number, run: () => void): void => {
    if (ms === 0) run()
    else timer = setTimeout(run, ms)
  }
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

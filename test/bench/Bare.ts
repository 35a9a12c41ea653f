import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Agent, type Dispatcher } from "undici"

/**
 * The honest fast baseline, a process of its own: `node test/bench/Bare.ts ORIGIN` prints the port it listens on. What
 * a good engineer writes who only has to pass bytes on: keep-alive both ways, nothing buffered, back-pressure, the
 * upstream is let go when the client is gone. It knows no keys, limits, usage, metrics or timeouts.
 */

const origin = process.argv[2] ?? ""
const agent = new Agent({ connections: 1_024, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })

const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "expect",
  "host"
])

const endToEnd = (raw: ReadonlyArray<string | Buffer>): Array<string> => {
  const kept: Array<string> = []
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!.toString("latin1")
    if (!hopByHop.has(name.toLowerCase())) kept.push(name, raw[i + 1]!.toString("latin1"))
  }
  return kept
}

class Passage implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse
  #controller: Dispatcher.DispatchController | undefined

  constructor(response: ServerResponse) {
    this.#response = response
    response.once("close", () => {
      if (!response.writableFinished) this.#controller?.abort(new Error("the client is gone"))
    })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#response.destroyed) controller.abort(new Error("the client is gone"))
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    this.#response.writeHead(status, endToEnd(Array.isArray(controller.rawHeaders) ? controller.rawHeaders : []))
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#response.write(chunk)) return
    controller.pause()
    this.#response.once("drain", () => controller.resume())
  }

  onResponseEnd(): void {
    this.#response.end()
  }

  onResponseError(): void {
    if (this.#response.headersSent) this.#response.destroy()
    else this.#response.writeHead(502).end()
  }
}

const pass = (request: IncomingMessage, response: ServerResponse): void => {
  const { method = "GET", rawHeaders, url = "/" } = request
  agent.dispatch({ origin, method, path: url, headers: endToEnd(rawHeaders), body: request }, new Passage(response))
}

const server = createServer(pass)
server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () => {
  const address = server.address()
  if (address !== null && typeof address === "object") process.stdout.write(`${address.port}\n`)
})

// Nobody is left to end it: the bench that started it is gone.
process.once("disconnect", () => process.exit())

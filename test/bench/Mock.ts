import { createServer, type Socket } from "node:net"
import { answer, contentEvents, doneEvent, models, path, silentModel, slowMs, streams, usageEvent } from "./Scenario.ts"

/**
 * The mock upstream, a process of its own: `node test/bench/Mock.ts` prints the port it listens on.
 *
 * It speaks just enough HTTP/1.1 on bare sockets (bodies with a length, keep-alive, pipelining): it must never be what
 * a measurement measures, and it shares the cores with what is measured. `node:http` takes 40 % more time for a
 * request.
 */

const head = (lines: ReadonlyArray<string>): string => `HTTP/1.1 200 OK\r\n${lines.join("\r\n")}\r\n\r\n`
const framed = (event: string): string => `${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`

const plain = Buffer.from(head(["content-type: application/json", `content-length: ${answer.length}`]) + answer)
const streamHead = head(["content-type: text/event-stream", "cache-control: no-cache", "transfer-encoding: chunked"])
const contents = contentEvents.map((event) => Buffer.from(framed(event)))
const contentAt = (index: number): Buffer => contents[index % contents.length]!
const first = Buffer.concat([Buffer.from(streamHead), contentAt(0)])
const ending = (withUsage: boolean) =>
  Buffer.from(`${withUsage ? framed(usageEvent) : ""}${framed(doneEvent)}0\r\n\r\n`)
const endings = { plain: ending(false), withUsage: ending(true) }
const unknown = Buffer.from("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
const lengthRequired = Buffer.from("HTTP/1.1 411 Length Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

const paced = (socket: Socket, { chunks, everyMs }: { chunks: number; everyMs: number }, end: Buffer): void => {
  let sent = 1
  socket.write(first)
  const timer = setInterval(() => {
    if (sent < chunks) {
      socket.write(contentAt(sent++))
      return
    }
    clearInterval(timer)
    socket.off("close", stop)
    socket.write(end)
  }, everyMs)
  const stop = () => clearInterval(timer)
  socket.once("close", stop)
}

/** As fast as the reader reads, and still one write for each chunk. */
const burst = (socket: Socket, end: Buffer): void => {
  let sent = 1
  socket.write(first)
  const next = (): void => {
    if (socket.destroyed) return
    if (sent === streams.burst.chunks) socket.write(end)
    else if (socket.write(contentAt(sent++))) setImmediate(next)
    else socket.once("drain", next)
  }
  setImmediate(next)
}

const reply = (socket: Socket, head: string, body: Buffer): void => {
  if (!head.startsWith(`POST ${path} `)) {
    socket.write(unknown)
    return
  }
  const end = body.includes('"include_usage":true') ? endings.withUsage : endings.plain
  if (body.includes(models.instant)) socket.write(plain)
  else if (body.includes(models.paced)) paced(socket, streams.paced, end)
  else if (body.includes(models.brief)) paced(socket, streams.brief, end)
  else if (body.includes(models.burst)) burst(socket, end)
  else if (body.includes(models.slow)) setTimeout(() => socket.write(plain), slowMs)
  else if (!body.includes(silentModel)) socket.write(unknown)
}

const contentLength = /\r\ncontent-length: *(\d+)/i
const chunkedBody = /\r\ntransfer-encoding:/i

const server = createServer({ noDelay: true }, (socket) => {
  let pending: Buffer = Buffer.alloc(0)
  socket.on("error", () => socket.destroy())
  socket.on("data", (bytes: Buffer) => {
    pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes])
    for (;;) {
      const headEnd = pending.indexOf("\r\n\r\n")
      if (headEnd === -1) return
      const head = pending.toString("latin1", 0, headEnd)
      if (chunkedBody.test(head)) {
        socket.end(lengthRequired)
        return
      }
      const end = headEnd + 4 + Number(contentLength.exec(head)?.[1] ?? 0)
      if (pending.length < end) return
      const body = pending.subarray(headEnd + 4, end)
      pending = pending.subarray(end)
      reply(socket, head, body)
    }
  })
})
server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () => {
  const address = server.address()
  if (address !== null && typeof address === "object") process.stdout.write(`${address.port}\n`)
})

// Nobody is left to end it: the bench that started it is gone.
process.once("disconnect", () => process.exit())

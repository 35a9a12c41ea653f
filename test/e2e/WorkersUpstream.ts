import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect } from "effect"
import { portOf } from "../upstream/SimulatorServer.ts"

/** The model whose streams stop in the middle until the gate is opened. */
export const gated = "gated"
export const beginning = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "one" } }] })}\n\n`
export const ending = "data: [DONE]\n\n"

const usage = { prompt_tokens: 2, completion_tokens: 10, total_tokens: 12 }

/** An upstream that answers at once, with the same usage each time. */
export const make = Effect.gen(function* () {
  let gate = Promise.withResolvers<void>()
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    let text = ""
    for await (const chunk of request) text += String(chunk)
    if (!text.includes(`"${gated}"`)) {
      response.writeHead(200, { "content-type": "application/json" })
      response.end(JSON.stringify({ choices: [], usage }))
      return
    }
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(beginning)
    await gate.promise
    response.end(ending)
  }
  const server = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer((request, response) => void answer(request, response))
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
      return server
    }),
    (server) =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )
  return {
    origin: `http://127.0.0.1:${portOf(server.address())}`,
    /** Ends the streams that wait. Later streams wait again. */
    open: Effect.sync(() => {
      gate.resolve()
      gate = Promise.withResolvers()
    })
  }
})

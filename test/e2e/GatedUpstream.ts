import { Effect } from "effect"
import * as ScriptedServer from "../upstream/ScriptedServer.ts"

const event = (content: string): string =>
  `data: ${JSON.stringify({ object: "chat.completion.chunk", choices: [{ index: 0, delta: { content } }] })}\n\n`

const usage = `data: ${JSON.stringify({
  object: "chat.completion.chunk",
  choices: [],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
})}\n\n`

/** What comes before the gate, and what behind it. */
export const beginning = event("one") + event("two")
export const ending = `${event("three é")}data: [DONE]\n\n`

/**
 * An upstream whose streams stop in the middle until the gate is opened. `begun`: so many of them have sent their first
 * half.
 */
export const make = Effect.gen(function* () {
  const gate = Promise.withResolvers<void>()
  let begun = 0
  const server = yield* ScriptedServer.serve(async (peer) => {
    await peer.request()
    await peer.write(ScriptedServer.head(200, ["content-type", "text/event-stream", "transfer-encoding", "chunked"]))
    await peer.write(ScriptedServer.chunk(beginning))
    begun += 1
    await gate.promise
    const end = `${event("three é")}${usage}data: [DONE]\n\n`
    await peer.write(Buffer.concat([ScriptedServer.chunk(end), ScriptedServer.chunk("")]))
  })
  return { ...server, begun: () => begun, open: Effect.sync(() => gate.resolve()) }
})

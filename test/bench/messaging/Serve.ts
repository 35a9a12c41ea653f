import { createServer, type IncomingMessage } from "node:http"
import { Schema } from "effect"
import { type Done, nothing, Work, type WorkOf } from "./Work.ts"

/** A contender: what it does of each kind of work. */
export interface Contender {
  readonly publish: (work: WorkOf<"Publish">) => Promise<Done>
  readonly consume: (work: WorkOf<"Consume">) => Promise<Done>
  readonly roundTrip?: (work: WorkOf<"RoundTrip">) => Promise<Done>
  readonly empty: (work: WorkOf<"Empty">) => Promise<void>
}

const decodeWork = Schema.decodeUnknownSync(Schema.fromJsonString(Work))

const perform = async (contender: Contender, work: Work): Promise<Done> => {
  switch (work._tag) {
    case "Publish":
      return await contender.publish(work)
    case "Consume":
      return await contender.consume(work)
    case "RoundTrip":
      return (await contender.roundTrip?.(work)) ?? nothing
    case "Empty":
      await contender.empty(work)
      return nothing
  }
}

const textOf = async (request: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const chunk of request) text += String(chunk)
  return text
}

/** A process of the bench's own: it prints the port that it takes work on, one at a time, and ends with its parent. */
export const serve = (contender: Contender): void => {
  const server = createServer((request, response) => {
    textOf(request)
      .then((text) => perform(contender, decodeWork(text)))
      .then(
        (done) => response.end(JSON.stringify(done)),
        (error: unknown) => response.writeHead(500).end(String(error))
      )
  })
  server.listen({ port: 0, host: "127.0.0.1" }, () => {
    const address = server.address()
    if (address !== null && typeof address === "object") process.stdout.write(`${address.port}\n`)
  })
  process.once("disconnect", () => process.exit())
}

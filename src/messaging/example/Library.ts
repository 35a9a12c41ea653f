import { Clock, Effect, Layer, Schedule } from "effect"
import { BrokerClient } from "../BrokerClient.ts"
import { reading } from "./Topologies.ts"
import type { Page } from "./Workers.ts"

const texts = ["It was a bright cold day in April", "and the clocks", "were striking thirteen"]

const pagesOf = (book: string): ReadonlyArray<Page> =>
  texts.map((text, index) => ({ book, page: index + 1, pages: texts.length, text, isPicture: index === 1 }))

/** Lends a book: a batch of its pages, in one message. Answers the book's task id. */
export const lend = Effect.gen(function* () {
  const client = yield* BrokerClient
  const book = `book-${yield* Clock.currentTimeMillis}`
  const tasks = pagesOf(book).map((payload) => ({
    task_id: `${book}.${payload.page}`,
    task_type: "read",
    service: "svc-example",
    payload
  }))
  yield* client.publishTasks(tasks, { mode: "batch_envelope", batchId: book })
  return book
})

/** A book a minute, as long as the layer is there; the first when everybody is likely to be at work. */
export const layer = Layer.effectDiscard(
  lend.pipe(
    Effect.tapError((error) => Effect.logWarning("The example could not lend a book", error.message)),
    Effect.ignore,
    Effect.repeat(Schedule.spaced("1 minute")),
    Effect.delay("1 second"),
    Effect.forkScoped
  )
).pipe(Layer.provide(BrokerClient.layer({ topology: reading })))

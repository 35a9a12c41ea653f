import { Clock, Effect, Layer, Schedule } from "effect"
import { BrokerClient } from "../messaging/publish/BrokerClient.ts"
import { readTopology } from "./Topologies.ts"
import type { Page } from "./Workers.ts"

const texts = ["It was a bright cold day in April", "and the clocks", "were striking thirteen"]

const pagesOf = (book: string): ReadonlyArray<Page> =>
  texts.map((text, index) => ({
    book,
    page: index + 1,
    pages: texts.length,
    text,
    isPicture: index === 1,
    isSealed: false
  }))

const taskOf = (payload: Page) => ({
  task_id: `${payload.book}.${payload.page}`,
  task_type: "read",
  service: "svc-example",
  payload
})

/** Lends a book: a batch of its pages, in one message. Answers the book's task id. */
export const publishBook = Effect.gen(function* () {
  const client = yield* BrokerClient
  const book = `book-${yield* Clock.currentTimeMillis}`
  yield* client.publishTasks(pagesOf(book).map(taskOf), { mode: "batch_envelope", batchId: book })
  yield* Effect.logInfo(`The example lends ${book}`)
  return book
})

/** A book of one page that nobody may read before somebody asks for it: a dead letter, to be replayed. */
const publishSealedLetter = Effect.gen(function* () {
  const client = yield* BrokerClient
  const letter = `letter-${yield* Clock.currentTimeMillis}`
  const text = "There is no Frigate like a Book"
  yield* client.publishTask(taskOf({ book: letter, page: 1, pages: 1, text, isPicture: false, isSealed: true }))
  yield* Effect.logInfo(`The example sends ${letter}, which stays sealed until it is replayed`)
})

const ignoreFailure = <E extends { readonly message: string }, R>(publish: Effect.Effect<unknown, E, R>) =>
  publish.pipe(
    Effect.tapError((error) => Effect.logWarning("The example could not publish", error.message)),
    Effect.ignore
  )

/** One letter and a book a minute, as long as the layer is there; the first when everybody is likely to be at work. */
export const layer = Layer.effectDiscard(
  ignoreFailure(publishSealedLetter).pipe(
    Effect.andThen(Effect.repeat(ignoreFailure(publishBook), Schedule.spaced("1 minute"))),
    Effect.delay("1 second"),
    Effect.forkScoped
  )
).pipe(Layer.provide(BrokerClient.layer({ topology: readTopology })))

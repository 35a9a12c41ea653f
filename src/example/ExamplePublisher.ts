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

const publishBook = Effect.gen(function* () {
  const client = yield* BrokerClient
  const book = `book-${yield* Clock.currentTimeMillis}`
  yield* client.publishTasks(pagesOf(book).map(taskOf), { mode: "batch_envelope", batchId: book })
  yield* Effect.logInfo(`The example publishes ${book}`)
  return book
})

/** Publishes a task whose handler fails on purpose. The task becomes a dead letter that an operator can replay. */
const publishSealedLetter = Effect.gen(function* () {
  const client = yield* BrokerClient
  const letter = `letter-${yield* Clock.currentTimeMillis}`
  const text = "There is no Frigate like a Book"
  yield* client.publishTask(taskOf({ book: letter, page: 1, pages: 1, text, isPicture: false, isSealed: true }))
  yield* Effect.logInfo(`The example publishes ${letter}, which stays a dead letter until it is replayed`)
})

const ignoreFailure = <E extends { readonly message: string }, R>(publish: Effect.Effect<unknown, E, R>) =>
  publish.pipe(
    Effect.tapError((error) =>
      Effect.logWarning("The example could not publish a task and goes on with the next one", error.message)
    ),
    Effect.ignore
  )

/** Publishes one letter, and then one book per minute. Waits a second at first, so that the workers can start. */
export const layer = Layer.effectDiscard(
  ignoreFailure(publishSealedLetter).pipe(
    Effect.andThen(Effect.repeat(ignoreFailure(publishBook), Schedule.spaced("1 minute"))),
    Effect.delay("1 second"),
    Effect.forkScoped
  )
).pipe(Layer.provide(BrokerClient.layer({ topology: readTopology })))

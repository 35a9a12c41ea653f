import { assert } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { HandlerCheck, step } from "../../../layers/testing/index.ts"
import {
  Handler,
  type HandlerContext,
  RetryPolicy,
  SharedTasksSharedStatusTopology,
  TaskConsumer
} from "../../../src/messaging/index.ts"

export const topology = new SharedTasksSharedStatusTopology({
  tasks_exchange: "orders",
  tasks_queue: "orders.work",
  tasks_routing_key: "orders.work",
  status_exchange: "orders.status",
  status_queue: "orders.status"
})

export class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", { order: Schema.String }) {}

/** What is outside the worker: the processor of cards, and a database. */
export class Shop extends Context.Service<
  Shop,
  {
    /** Takes the money. Of calls with the same key, the processor carries out the first alone. */
    readonly charge: (order: string, key?: string) => Effect.Effect<void, CardDeclined>
    readonly isDone: (order: string) => Effect.Effect<boolean>
    readonly markDone: (order: string) => Effect.Effect<void>
    readonly sold: Effect.Effect<number>
    /** Stores the counter and marks the order as done, in one transaction. */
    readonly storeSold: (order: string, sold: number) => Effect.Effect<void>
    /** Counts the order and marks it as done, in one transaction that sees no other. */
    readonly countSold: (order: string) => Effect.Effect<void>
    readonly books: { readonly charges: Array<string>; readonly done: Set<string>; sold: number }
  }
>()("test/Shop") {
  static readonly layer = Layer.sync(Shop, () => {
    const books = { charges: [] as string[], done: new Set<string>(), sold: 0 }
    const keys = new Set<string>()
    const store = (order: string, sold: number) => {
      books.done.add(order)
      books.sold = sold
    }
    return {
      charge: (order, key) =>
        step(
          `charge ${order}`,
          Effect.sync(() => {
            if (key !== undefined && keys.has(key)) return
            if (key !== undefined) keys.add(key)
            books.charges.push(order)
          }),
          { error: () => new CardDeclined({ order }) }
        ),
      isDone: (order) =>
        step(
          `look up ${order}`,
          Effect.sync(() => books.done.has(order))
        ),
      markDone: (order) =>
        step(
          `mark ${order} as done`,
          Effect.sync(() => {
            books.done.add(order)
          })
        ),
      sold: step(
        "read the counter",
        Effect.sync(() => books.sold)
      ),
      storeSold: (order, sold) =>
        step(
          `store the counter for ${order}`,
          Effect.sync(() => store(order, sold))
        ),
      countSold: (order) =>
        step(
          `count ${order}`,
          Effect.sync(() => {
            if (!books.done.has(order)) store(order, books.sold + 1)
          })
        ),
      books
    }
  })
}

type Handle = (order: string, context: HandlerContext) => Effect.Effect<unknown, unknown, Shop>

/** Charges with a key, counts in one transaction, and tells of it before the acknowledgement. */
export const correct: Handle = Effect.fnUntraced(function* (order, context) {
  const { charge, countSold } = yield* Shop
  yield* charge(order, order)
  yield* countSold(order)
  yield* context.publishStatus("sold")
})

/** Bug 1: a crash between the charge and the mark repeats the charge. */
export const chargesTwice: Handle = Effect.fnUntraced(function* (order, context) {
  const { charge, countSold, isDone } = yield* Shop
  if (!(yield* isDone(order))) {
    yield* charge(order)
    yield* countSold(order)
  }
  yield* context.publishStatus("sold")
})

/** Bug 2: the status is published after the acknowledgement, so a crash in between loses it. */
export const tellsTooLate: Handle = Effect.fnUntraced(function* (order, context) {
  const { charge, countSold } = yield* Shop
  yield* charge(order, order)
  yield* countSold(order)
  yield* Effect.forkDetach(context.publishStatus("sold"))
})

/** Bug 3: two deliveries read the counter before one of them stores it. */
export const losesCounts: Handle = Effect.fnUntraced(function* (order, context) {
  const { charge, isDone, sold, storeSold } = yield* Shop
  yield* charge(order, order)
  if (!(yield* isDone(order))) yield* storeSold(order, (yield* sold) + 1)
  yield* context.publishStatus("sold")
})

const orders = ["o1", "o2"]

/** Every order is charged, counted and told of, and no order twice. */
export const soldOnce = ({ deadLetters, statusesOf }: HandlerCheck.Settled) =>
  Effect.gen(function* () {
    const { books } = yield* Shop
    for (const order of orders) {
      assert.strictEqual(books.charges.filter((charged) => charged === order).length, 1, `charges of ${order}`)
      assert.include(statusesOf(order), "sold", `statuses of ${order}`)
    }
    assert.strictEqual(books.sold, orders.length, "the counter")
    assert.deepStrictEqual(deadLetters, [], "dead letters")
  })

/** A check of a handler that sells two orders, with two tasks in work at once. */
export const selling = (name: string, handle: Handle) =>
  HandlerCheck.make({
    name,
    topology,
    world: Shop.layer,
    worker: TaskConsumer.layer({
      concurrency: 2,
      retryPolicy: new RetryPolicy({ max_retries: 5, delay_ms: 10_000 }),
      handler: Handler.make(({ task_id }, context) => handle(task_id, context))
    }),
    tasks: orders.map((task_id) => ({ task_id })),
    invariant: soldOnce
  })

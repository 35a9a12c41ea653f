import { Effect, Layer, Schema } from "effect"
import {
  AggregationHandler,
  AggregationWorkerRuntime,
  BrokerClient,
  Handler,
  Redis,
  RetryPolicy,
  RoutedTasksSharedStatusShardedAggregationTopology,
  TaskConsumer
} from "svc-runtime/messaging"

const topology = new RoutedTasksSharedStatusShardedAggregationTopology({
  tasks_exchange: "books.tasks",
  tasks_queue: "books.count",
  task_types: ["count"],
  status_exchange: "books.status",
  status_queue: "books.status",
  shard_count: 2,
  aggregation_queue_template: "books.sums.{shard}"
})
const Page = Schema.Struct({ book: Schema.String, pages: Schema.Int, text: Schema.String })
const Counted = Schema.Struct({ pages: Schema.Int, words: Schema.Int })
const Sums = Schema.Array(Schema.NumberFromString)
const retryPolicy = new RetryPolicy()

/** Declares the topology and publishes. Needs a `Broker`. */
export const client = BrokerClient.layer({ topology })

/** Counts the words of a page, and publishes the result to the shard of the book. */
const counter = TaskConsumer.layer({
  retryPolicy,
  handler: Handler.withPayload(Page, ({ payload: { book, pages, text } }, context) =>
    context.publishAggregationStatus("counted", {
      meta: { parent_task_id: book },
      result: { pages, words: text.split(/\s+/).length }
    })
  )
}).pipe(Layer.provide(client))

/** Sums up each book, whose pages all come to one shard. Redis keeps the counts, so a redelivered page counts once. */
const sums = AggregationWorkerRuntime.layer({
  topology,
  shardGroups: [[0], [1]],
  retryPolicy,
  handler: AggregationHandler.make(({ result }, { client, parentTaskId: book = "", taskId: page }) =>
    Effect.gen(function* () {
      const redis = yield* Redis
      const { pages, words } = yield* Schema.decodeUnknownEffect(Counted)(result)
      const key = redis.key(`words-of:${book}`)
      yield* redis.command("HSET", key, page, words)
      yield* redis.command("EXPIRE", key, 86_400)
      const counted = yield* Schema.decodeUnknownEffect(Sums)(yield* redis.command("HVALS", key))
      if (counted.length < pages) return
      const total = counted.reduce((sum, words) => sum + words, 0)
      yield* client.publishStatus({ task_id: book, status: "completed", result: { words: total } })
    })
  )
})

/** The workers. They need a `Redis` as well as the `Broker`. */
export const counters = Layer.merge(counter, sums)

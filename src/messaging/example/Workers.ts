import { Effect, Layer, Schema } from "effect"
import * as AggregationHandler from "../AggregationHandler.ts"
import * as AggregationWorkerRuntime from "../AggregationWorkerRuntime.ts"
import { BrokerClient } from "../BrokerClient.ts"
import * as Handler from "../Handler.ts"
import type { HandlerContext } from "../HandlerContext.ts"
import { RetryPolicy } from "../RetryPolicy.ts"
import { LifecycleStatusConfig, RetryStatusConfig } from "../StatusSettings.ts"
import * as TaskConsumer from "../TaskConsumer.ts"
import * as WorkflowConsumer from "../WorkflowConsumer.ts"
import * as WorkflowHandler from "../WorkflowHandler.ts"
import { Shelf } from "./Shelf.ts"
import { reading, scanning, summarising } from "./Topologies.ts"

/** A page of a book: text, or a picture of text. */
export const Page = Schema.Struct({
  book: Schema.String,
  page: Schema.Int,
  pages: Schema.Int,
  text: Schema.String,
  isPicture: Schema.Boolean
})
type Page = typeof Page.Type

const Read = Schema.Struct({ page: Schema.Int, pages: Schema.Int, words: Schema.Int })

const settings = {
  retryPolicy: new RetryPolicy({ max_retries: 3, delay_ms: 2_000 }),
  retryStatuses: new RetryStatusConfig({ enabled: true }),
  lifecycleStatuses: new LifecycleStatusConfig({ enabled: true })
}

const wordsOf = (text: string): number => text.split(/\s+/).filter((word) => word !== "").length

/** What was read of a page belongs to its book. */
const report = ({ book, page, pages, text }: Page, context: HandlerContext) =>
  context.publishAggregationStatus("page-read", {
    meta: { parent_task_id: book },
    result: { page, pages, words: wordsOf(text) }
  })

/** Reads text, and hands pictures to the scanner; the first page of a book is stuck to its cover at the first try. */
const reader = TaskConsumer.layer({
  ...settings,
  consumerName: "svc-example-reader",
  handler: Handler.byTaskType({
    read: Handler.withPayload(Page, ({ payload }, context) => {
      if (payload.isPicture) return context.manualRetry({ taskType: "scan", reason: "the page is a picture" })
      if (payload.page === 1 && context.retryAttempt === 0) return Effect.fail(new Error("The page sticks to the cover."))
      return report(payload, context)
    })
  })
}).pipe(Layer.provide(BrokerClient.layer({ topology: reading })))

const scanner = TaskConsumer.layer({
  ...settings,
  consumerName: "svc-example-scanner",
  handler: Handler.byTaskType({ scan: Handler.withPayload(Page, ({ payload }, context) => report(payload, context)) })
}).pipe(Layer.provide(BrokerClient.layer({ topology: scanning })))

/** Puts the pages of a book together; whoever brings the last one hands the book on to be summarised. */
const bookbinder = AggregationWorkerRuntime.layer({
  shardGroups: [[0], [1]],
  retryPolicy: settings.retryPolicy,
  handler: AggregationHandler.make((event, context) =>
    Effect.gen(function* () {
      const { page, pages, words } = yield* Schema.decodeUnknownEffect(Read)(event.result)
      const book = context.parentTaskId ?? ""
      const shelf = yield* Shelf
      const bound = shelf.put(book, { page, pages, words })
      if (bound === undefined) return
      const publisher = yield* Publisher
      yield* publisher.publishToEntry({ task_id: book, payload: { words: bound.words, pages } }, "book")
    })
  )
}).pipe(Layer.provide(BrokerClient.layer({ topology: reading })))

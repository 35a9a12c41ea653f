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

const Page = Schema.Struct({
  book: Schema.NonEmptyString,
  page: Schema.Int,
  pages: Schema.Int,
  text: Schema.String,
  isPicture: Schema.Boolean
})
/** A page of a book: text, or a picture of text. */
export type Page = typeof Page.Type

const ReadPage = Schema.Struct({ page: Schema.Int, pages: Schema.Int, words: Schema.Int })
const Book = Schema.Struct({ pages: Schema.Int, words: Schema.Int })
const Outline = Schema.Struct({ chapters: Schema.Int, words: Schema.Int })

const retryPolicy = new RetryPolicy({ max_retries: 3, delay_ms: 2_000 })
const retryStatuses = new RetryStatusConfig({ enabled: true })
const ofTasks = { retryPolicy, retryStatuses, lifecycleStatuses: new LifecycleStatusConfig({ enabled: true }) }

/** What was read of a page is input for its book. */
const report = ({ book, page, pages, text }: Page, context: HandlerContext) =>
  context.publishAggregationStatus("aggregating", {
    meta: { parent_task_id: book },
    result: { page, pages, words: text.split(/\s+/).length }
  })

/** Reads text and hands pictures over to the scanner. Every first page sticks to the cover, at the first try. */
const reader = TaskConsumer.layer({
  ...ofTasks,
  consumerName: "svc-example-reader",
  handler: Handler.byTaskType({
    read: Handler.withPayload(Page, ({ payload }, context) => {
      if (payload.isPicture) return context.manualRetry({ taskType: "scan", reason: "the page is a picture" })
      const sticks = payload.page === 1 && context.retryAttempt === 0
      return sticks ? Effect.fail(new Error("The page sticks to the cover.")) : report(payload, context)
    })
  })
}).pipe(Layer.provide(BrokerClient.layer({ topology: reading })))

const scanner = TaskConsumer.layer({
  ...ofTasks,
  consumerName: "svc-example-scanner",
  handler: Handler.byTaskType({ scan: Handler.withPayload(Page, ({ payload }, context) => report(payload, context)) })
}).pipe(Layer.provide(BrokerClient.layer({ topology: scanning })))

/** Puts pages together; the last page of a book sends it on to its summary. */
const bookbinder = Layer.unwrap(
  Effect.map(BrokerClient.make({ topology: summarising }), (workflow) => {
    const shelf = new Shelf()
    return AggregationWorkerRuntime.layer({
      topology: reading,
      shardGroups: [[0], [1]],
      retryPolicy,
      retryStatuses,
      consumerName: "svc-example-bookbinder",
      handler: AggregationHandler.make((event, { client, parentTaskId: book = "" }) =>
        Effect.gen(function* () {
          const read = yield* Schema.decodeUnknownEffect(ReadPage)(event.result)
          const words = shelf.put(book, read)
          if (words === undefined) return
          yield* client.publishStatus({ task_id: book, status: "aggregation-complete", result: { words } })
          yield* workflow.publishToEntry({ task_id: book, payload: { pages: read.pages, words } }, "book")
        })
      )
    })
  })
)

const outliner = WorkflowConsumer.layer({
  stage: "outline",
  consumerName: "svc-example-outliner",
  retryPolicy,
  handler: WorkflowHandler.withPayload(Book, ({ payload: { pages, words } }, context) =>
    context.publishToStage("write", { payload: { chapters: Math.ceil(pages / 2), words } })
  )
})

const writer = WorkflowConsumer.layer({
  stage: "write",
  consumerName: "svc-example-writer",
  retryPolicy,
  handler: WorkflowHandler.withPayload(Outline, ({ payload: { chapters, words }, task_id }, context) => {
    const summary = `${chapters} chapters, ${words} words`
    return Effect.andThen(
      context.publishStatus("completed", { message: summary, result: { chapters, words } }),
      Effect.logInfo(`The example has summarised ${task_id}: ${summary}`)
    )
  })
})

const summarisers = Layer.merge(outliner, writer).pipe(Layer.provide(BrokerClient.layer({ topology: summarising })))

/** Everybody who works on books, for as long as the layer is there. */
export const layer = Layer.mergeAll(reader, scanner, bookbinder, summarisers)

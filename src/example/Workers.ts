import { Effect, Layer, Schema } from "effect"
import * as AggregationHandler from "../messaging/consume/AggregationHandler.ts"
import * as AggregationWorkerRuntime from "../messaging/consume/AggregationWorkerRuntime.ts"
import * as Handler from "../messaging/consume/Handler.ts"
import type { HandlerContext } from "../messaging/consume/HandlerContext.ts"
import * as TaskConsumer from "../messaging/consume/TaskConsumer.ts"
import * as WorkflowConsumer from "../messaging/consume/WorkflowConsumer.ts"
import * as WorkflowHandler from "../messaging/consume/WorkflowHandler.ts"
import { BrokerClient } from "../messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../messaging/topology/RetryPolicy.ts"
import { LifecycleStatusConfig, RetryStatusConfig } from "../messaging/topology/StatusSettings.ts"
import { PendingBooks } from "./PendingBooks.ts"
import { readTopology, scanTopology, summaryTopology } from "./Topologies.ts"

const Page = Schema.Struct({
  book: Schema.NonEmptyString,
  page: Schema.Int,
  pages: Schema.Int,
  text: Schema.String,
  isPicture: Schema.Boolean,
  isSealed: Schema.Boolean
})
/** A page with text or with a picture of text. A sealed page fails until an operator replays the task. */
export type Page = typeof Page.Type

const ReadPage = Schema.Struct({ page: Schema.Int, pages: Schema.Int, words: Schema.Int })
const Book = Schema.Struct({ pages: Schema.Int, words: Schema.Int })
const Outline = Schema.Struct({ chapters: Schema.Int, words: Schema.Int })

const retryPolicy = new RetryPolicy({ max_retries: 3, delay_ms: 2_000 })
const retryStatuses = new RetryStatusConfig({ enabled: true })
const taskOptions = { retryPolicy, retryStatuses, lifecycleStatuses: new LifecycleStatusConfig({ enabled: true }) }

const report = ({ book, page, pages, text }: Page, context: HandlerContext) =>
  context.publishAggregationStatus("aggregating", {
    meta: { parent_task_id: book },
    result: { page, pages, words: text.split(/\s+/).length }
  })

const isReplayed = ({ headers }: HandlerContext) => headers["x-svc-replayed-from-dlq"] === true

/**
 * Shows three features: a retry (the first page of each book fails once), a manual retry by another worker (pictures),
 * and the replay of a dead letter (sealed pages).
 */
const reader = TaskConsumer.layer({
  ...taskOptions,
  consumerName: "svc-example-reader",
  handler: Handler.byTaskType({
    read: Handler.withPayload(Page, ({ payload }, context) => {
      if (payload.isSealed) {
        const refused = new Handler.PermanentFailure({
          message:
            "This page of the example fails on purpose, so that it becomes a dead letter. Replay it, and it succeeds."
        })
        return isReplayed(context) ? report(payload, context) : Effect.fail(refused)
      }
      if (payload.isPicture) return context.manualRetry({ taskType: "scan", reason: "the page is a picture" })
      const sticks = payload.page === 1 && context.retryAttempt === 0
      return sticks ? Effect.fail(new Error("The page sticks to the cover.")) : report(payload, context)
    })
  })
}).pipe(Layer.provide(BrokerClient.layer({ topology: readTopology })))

const scanner = TaskConsumer.layer({
  ...taskOptions,
  consumerName: "svc-example-scanner",
  handler: Handler.byTaskType({ scan: Handler.withPayload(Page, ({ payload }, context) => report(payload, context)) })
}).pipe(Layer.provide(BrokerClient.layer({ topology: scanTopology })))

/** Collects the pages of a book. The last page starts the workflow that makes the summary. */
const bookbinder = Layer.unwrap(
  Effect.map(BrokerClient.make({ topology: summaryTopology }), (workflow) => {
    const shelf = new PendingBooks()
    return AggregationWorkerRuntime.layer({
      topology: readTopology,
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
    const summary = `${chapters} ${chapters === 1 ? "chapter" : "chapters"}, ${words} words`
    return Effect.andThen(
      context.publishStatus("completed", { message: summary, result: { chapters, words } }),
      Effect.logInfo(`The example has summarised ${task_id}: ${summary}`)
    )
  })
})

const summarisers = Layer.merge(outliner, writer).pipe(Layer.provide(BrokerClient.layer({ topology: summaryTopology })))

export const layer = Layer.mergeAll(reader, scanner, bookbinder, summarisers)

import { Effect, Layer, Option, Schema } from "effect"
import type { Detail } from "../../live/Digest.ts"
import * as LeasedSource from "../../live/LeasedSource.ts"
import type { Topic } from "../../live/Topics.ts"
import type { WorkerReport } from "../../messaging/control/ControlRecords.ts"
import type { Redis } from "../../services/Redis.ts"
import { QueueBoard, type QueueView } from "./QueueBoard.ts"

export interface Options {
  /** The prefix of the status store. Processes with the same prefix see the same queues. */
  readonly storePrefix?: string | undefined
}

/** Tells operators which queues and workers have changed, while somebody follows them. */
export const layer = ({ storePrefix = "svc" }: Options): Layer.Layer<never, never, QueueBoard | Redis> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const board = yield* QueueBoard
      const source = (topic: Topic, views: Effect.Effect<ReadonlyMap<string, Detail>, unknown>) =>
        LeasedSource.watch({
          topic,
          name: storePrefix,
          every: lookEveryMs,
          advance: (progress) => Effect.map(views, (now) => differences(progress, now))
        })
      yield* source(
        "queues",
        Effect.map(board.queues, (queues) => byName(queues, ({ queue }) => queue, describeQueue))
      )
      yield* source(
        "workers",
        Effect.map(board.workers, (workers) => byName(workers, ({ worker }) => worker, describeWorker))
      )
    })
  )

const lookEveryMs = 2_000

/** Those that do not fit are not shown. */
const mostNames = 1_000

const byName = <A>(
  views: ReadonlyArray<A>,
  nameOf: (view: A) => string,
  describe: (view: A) => Detail
): ReadonlyMap<string, Detail> => new Map(views.slice(0, mostNames).map((view) => [nameOf(view), describe(view)]))

const describeQueue = (view: QueueView): Detail => ({
  queue: view.queue,
  state: view.state,
  ready: view.ready,
  consumers: view.consumers,
  in_work: view.in_work,
  waiting_for_retry: view.waiting_for_retry,
  dead: view.dead,
  stopped_consumers: view.stopped_consumers
})

const describeWorker = ({ consumers, host, pid, started_at, version, worker }: WorkerReport): Detail => ({
  worker,
  host,
  pid,
  version,
  started_at,
  consumers: consumers.length,
  in_work: consumers.reduce((sum, { in_work }) => sum + in_work, 0),
  paused_consumers: consumers.filter(({ paused }) => paused).length
})

const Progress = Schema.fromJsonString(Schema.Record(Schema.String, Schema.String))
const decodeProgress = Schema.decodeUnknownOption(Progress)

/** The progress has the text of each view. Without one, there is nothing to compare with yet. */
const differences = (progress: string | undefined, now: ReadonlyMap<string, Detail>): LeasedSource.Step => {
  const texts = new Map([...now].map(([name, detail]) => [name, JSON.stringify(detail)]))
  const next = { progress: JSON.stringify(Object.fromEntries(texts)) }
  const read = Option.map(decodeProgress(progress), (views) => new Map(Object.entries(views)))
  if (Option.isNone(read)) return { ...next, changes: [] }
  const before = read.value
  const changed = [...now].flatMap(([name, detail]) => {
    const earlier = before.get(name)
    if (earlier === texts.get(name)) return []
    return [{ kind: earlier === undefined ? "appeared" : "changed", detail }]
  })
  const gone = [...before.keys()].filter((name) => !now.has(name)).map((name) => ({ kind: "gone", detail: { name } }))
  return { ...next, changes: [...changed, ...gone] }
}

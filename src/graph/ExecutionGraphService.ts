import { Clock, Context, Effect, Layer, Option, Semaphore } from "effect"
import { SettingsError } from "../messaging/envelope/Errors.ts"
import { ValidationIssues } from "../messaging/topology/Parameters.ts"
import type { Topology } from "../messaging/topology/Topology.ts"
import { Broker } from "../services/Broker.ts"
import type { RedisError } from "../services/Redis.ts"
import { DeadLetterStore, type DeadLetterSummary } from "../status/dead-letters/DeadLetterStore.ts"
import * as WaitingMessages from "../status/history/WaitingMessages.ts"
import { type HistoryOptions, type StatusHistory, StatusStore } from "../status/store/StatusStore.ts"
import { TerminalStatusSet } from "../status/store/TerminalStatusSet.ts"
import type { IncompleteReason } from "./Completeness.ts"
import * as Evidence from "./draw/Evidence.ts"
import { buildExecutionGraph, type ExecutionGraph, type GraphEvidence, isKnown } from "./ExecutionGraph.ts"
import {
  type ExaminedChildren,
  type Explanation,
  explain,
  explainUnknownTask,
  type Inspection,
  mayWaitForChildren,
  openChildren,
  queueToInspect
} from "./Explain.ts"
import { type ObservationHistory, ObservationStore } from "./observations/ObservationStore.ts"
import { TaskQueues } from "./TaskQueues.ts"
import { taskState } from "./TaskState.ts"

export interface Options {
  /** The topology of the workers. Graphs contain its kind as `topology_kind`. */
  readonly topology: Topology
  /** The topologies of other workers for the same tasks. Explanations also look for messages in their queues. */
  readonly otherTopologies?: ReadonlyArray<Topology> | undefined
  /** The maximum number of children that are shown: 0 to 10,000. Default: 1,000. */
  readonly childrenLimit?: number
  /** The maximum number of dead letters that are shown per task: 1 to 200. Default: 200. */
  readonly deadLetterLimit?: number
  /**
   * The maximum number of statuses, observations and dead letters in one graph, 100 to 1,000,000. Default: 20,000.
   * Children beyond this limit are shown without their events. The same applies to children beyond 32 MiB of events in
   * total, and to a child with more than 4 MiB of statuses.
   */
  readonly evidenceLimit?: number
  /** The statuses that end a task. Default: `completed` and `failed`. */
  readonly terminalStatuses?: TerminalStatusSet | undefined
}

/** Builds and explains execution graphs. Returns `None` for an unknown task. Fails if a store is not available. */
export class ExecutionGraphService extends Context.Service<
  ExecutionGraphService,
  {
    readonly graph: (taskId: string) => Effect.Effect<Option.Option<ExecutionGraph>, RedisError>
    readonly explain: (taskId: string) => Effect.Effect<Option.Option<Explanation>, RedisError>
  }
>()("svc/ExecutionGraphService") {}

/**
 * Reads from the provided stores. Observations, dead letters and the broker are optional. A graph without observations
 * is partial. Fails with a `SettingsError` if a limit is out of range.
 */
export const layer = (options: Options): Layer.Layer<ExecutionGraphService, SettingsError, StatusStore> =>
  Layer.effect(
    ExecutionGraphService,
    Effect.gen(function* () {
      const issues = new ValidationIssues()
      const childrenLimit = issues.checkInteger("childrenLimit", options.childrenLimit, 0, 10_000) ?? 1_000
      const deadLetterLimit = issues.checkInteger("deadLetterLimit", options.deadLetterLimit, 1, 200) ?? 200
      const evidenceLimit = issues.checkInteger("evidenceLimit", options.evidenceLimit, 100, 1_000_000) ?? 20_000
      if (issues.mistakes.length > 0) return yield* SettingsError.of("ExecutionGraphService", issues.mistakes)
      const { otherTopologies = [], topology, terminalStatuses = new TerminalStatusSet() } = options
      const inboxes = new TaskQueues([topology, ...otherTopologies])
      const statusStore = yield* StatusStore
      const observationStore = yield* Effect.serviceOption(ObservationStore)
      const deadLetterStore = yield* Effect.serviceOption(DeadLetterStore)
      const broker = yield* Effect.serviceOption(Broker)

      const deadLettersOf = (taskId: string) =>
        Option.match(deadLetterStore, {
          onNone: () => Effect.succeed({ items: noLetters, more: false }),
          onSome: ({ list }) =>
            list({ task_id: taskId }, { limit: deadLetterLimit }).pipe(
              Effect.map(({ items, next_cursor }) => ({ items, more: next_cursor !== null })),
              // An `UnknownCursor` is impossible, because the first page is requested without a cursor.
              Effect.catch((error) => (error._tag === "RedisError" ? Effect.fail(error) : Effect.die(error)))
            )
        })

      const evidenceOf = (taskId: string, options?: HistoryOptions): Effect.Effect<StoredEvidence, RedisError> =>
        Effect.all(
          {
            taskId: Effect.succeed(taskId),
            statuses: statusStore.history(taskId, options),
            observations: Option.match(observationStore, {
              onNone: () => Effect.succeed(noObservations),
              onSome: ({ history }) => history(taskId)
            }),
            deadLetters: deadLettersOf(taskId)
          },
          { concurrency: "unbounded" }
        )

      const childrenOf = Effect.fnUntraced(function* (taskIds: ReadonlyArray<string>, own: StoredEvidence) {
        const found: Array<StoredEvidence> = []
        const bounds = { atMost: { events: evidenceLimit, bytes: maxChildBytes } }
        let [entries, bytes] = [entriesIn(own), bytesIn(own)]
        const isFull = () => entries >= evidenceLimit || bytes >= maxEvidenceBytes
        for (let next = 0; next < taskIds.length && !isFull(); next += childrenReadTogether) {
          const some = yield* Effect.forEach(
            taskIds.slice(next, next + childrenReadTogether),
            (taskId) => evidenceOf(taskId, bounds),
            { concurrency: childrenReadTogether }
          )
          for (const one of some) {
            if (isFull()) break
            entries += entriesIn(one)
            bytes += bytesIn(one)
            // A finished child without its newest statuses would appear unfinished, so such a child is left out.
            if (hasAllStatuses(one)) found.push(one)
          }
        }
        return found
      })

      /** Reads one child more than the limit, to find out whether there are more children. */
      const ownEvidenceOf = (taskId: string) =>
        Effect.all([evidenceOf(taskId), statusStore.childTaskIds(taskId, { limit: childrenLimit + 1 })], {
          concurrency: 2
        })

      const graph = Effect.fn("ExecutionGraphService.graph")(function* (taskId: string) {
        const [own, ids] = yield* ownEvidenceOf(taskId)
        const related = ids.slice(0, childrenLimit)
        const tasks = [own, ...(yield* childrenOf(related, own))]
        const examinedIds = new Set(tasks.map((task) => task.taskId))
        const leftOut: Array<readonly [IncompleteReason, string]> = [
          ...(ids.length > childrenLimit ? [["children_limit_reached", taskId] as const] : []),
          ...related.filter((id) => !examinedIds.has(id)).map((id) => ["evidence_limit_reached", id] as const),
          ...tasks.flatMap(({ deadLetters, taskId }) =>
            deadLetters.more ? [["dead_letter_limit_reached", taskId] as const] : []
          )
        ]
        const evidence: GraphEvidence = {
          topology,
          taskId,
          statuses: new Map(tasks.map(({ statuses, taskId }) => [taskId, statuses])),
          observations: new Map(tasks.map(({ observations, taskId }) => [taskId, observations])),
          deadLetters: tasks.flatMap(({ deadLetters }) => deadLetters.items),
          relatedTaskIds: related,
          leftOut
        }
        return isKnown(evidence) ? Option.some(buildExecutionGraph(evidence)) : Option.none()
      })

      const inspect = (queue: string): Effect.Effect<Inspection> =>
        Option.match(broker, {
          onNone: () => Effect.succeed("unavailable"),
          onSome: ({ inspect }) =>
            inspect(queue).pipe(
              Effect.map(Option.getOrElse((): Inspection => "missing")),
              Effect.catch(() => Effect.succeed<Inspection>("unavailable"))
            )
        })

      const stateOf = ({ deadLetters, observations, statuses }: StoredEvidence, isRelated: boolean) =>
        taskState({
          taskQueues: inboxes,
          observations: Evidence.readObservations(observations).entries,
          statuses: Evidence.readStatuses(statuses).entries,
          deadLetters: deadLetters.items,
          isRelated,
          isTerminal: (status) => terminalStatuses.has(status)
        })

      const explanation = Effect.fn("ExecutionGraphService.explain")(function* (taskId: string) {
        const [own, ids] = yield* ownEvidenceOf(taskId)
        const state = stateOf(own, ids.length > 0)
        const now = yield* Clock.currentTimeMillis
        const related = mayWaitForChildren(state) ? yield* childrenOf(ids.slice(0, childrenLimit), own) : []
        if ([own, ...related].every((one) => entriesIn(one) === 0)) {
          const waiting = yield* waitingQueues
          return waiting.length === 0 ? Option.none() : Option.some(explainUnknownTask(taskId, waiting))
        }
        const children: ExaminedChildren = {
          examined: related.length,
          hasMore: related.length < ids.length,
          open: openChildren(
            related.map((child) => [child.taskId, stateOf(child, true)]),
            now
          )
        }
        const queue = queueToInspect(state, now)
        const inspection = queue === undefined ? "unavailable" : yield* inspect(queue)
        const status = Evidence.readStatuses(own.statuses).entries.at(-1)
        return Option.some(explain(taskId, state, { inspection, children, status }, now))
      })

      const waitingQueues = Effect.provideContext(WaitingMessages.queues, yield* Effect.context<never>())
      const withRequestPermit = Semaphore.withPermits(yield* Semaphore.make(maxConcurrentRequests), 1)
      return ExecutionGraphService.of({
        graph: (taskId) => withRequestPermit(graph(taskId)),
        explain: (taskId) => withRequestPermit(explanation(taskId))
      })
    })
  )

interface StoredEvidence {
  readonly taskId: string
  readonly statuses: StatusHistory
  readonly observations: ObservationHistory
  readonly deadLetters: { readonly items: ReadonlyArray<DeadLetterSummary>; readonly more: boolean }
}

const entriesIn = ({ deadLetters, observations, statuses }: StoredEvidence): number =>
  statuses.events.length + observations.events.length + deadLetters.items.length

const bytesIn = ({ observations, statuses }: StoredEvidence): number =>
  [...statuses.events, ...observations.events].reduce((bytes, { json }) => bytes + json.length, 0)

const hasAllStatuses = ({ statuses: { events, newest } }: StoredEvidence): boolean =>
  (events.at(-1)?.sequence ?? newest) >= newest

const childrenReadTogether = 16

const maxEvidenceBytes = 32 * 1024 * 1024
const maxChildBytes = 4 * 1024 * 1024
/** Each request may hold the events of a whole graph in memory. Further requests wait. */
const maxConcurrentRequests = 4

const noObservations: ObservationHistory = { events: [], oldest: 0 }
const noLetters: ReadonlyArray<DeadLetterSummary> = []

import { Clock, Context, Effect, Layer, Option } from "effect"
import { SettingsError } from "../messaging/Errors.ts"
import { Findings } from "../messaging/Parameters.ts"
import type { Topology } from "../messaging/Topology.ts"
import { Broker } from "../services/Broker.ts"
import type { RedisError } from "../services/Redis.ts"
import { DeadLetterStore, type DeadLetterSummary } from "../status/DeadLetterStore.ts"
import { type StatusHistory, StatusStore } from "../status/StatusStore.ts"
import { TerminalStatusSet } from "../status/TerminalStatusSet.ts"
import type { IncompleteReason } from "./Completeness.ts"
import * as Evidence from "./Evidence.ts"
import { buildExecutionGraph, type ExecutionGraph, type GraphEvidence, isKnown } from "./ExecutionGraph.ts"
import {
  type Children,
  childrenSayMore,
  type Explanation,
  explain,
  type Inspection,
  openChildren,
  queueToInspect
} from "./Explain.ts"
import { Inboxes } from "./Inboxes.ts"
import { type ObservationHistory, ObservationStore } from "./ObservationStore.ts"
import { whereabouts } from "./Whereabouts.ts"

export interface Options {
  /** Its kind is that of the graphs. */
  readonly topology: Topology
  /** Of other workers that the same tasks come to: what waits for those is looked for in their queues. */
  readonly otherTopologies?: ReadonlyArray<Topology> | undefined
  /** How many children of a task are shown: 0 to 10,000. Default: 1,000. */
  readonly childrenLimit?: number
  /** How many dead letters of each task are shown: 1 to 200. Default: 200. */
  readonly deadLetterLimit?: number
  /**
   * How many statuses, observations and dead letters one graph may be made of; children behind that are shown without
   * what happened to them. 100 to 1,000,000. Default: 20,000.
   */
  readonly evidenceLimit?: number
  /** Default: `completed` and `failed`. */
  readonly terminalStatuses?: TerminalStatusSet | undefined
}

/** What happened to a task, and why it is not done. None: nothing was ever heard of it. */
export class ExecutionGraphService extends Context.Service<
  ExecutionGraphService,
  {
    readonly graph: (taskId: string) => Effect.Effect<Option.Option<ExecutionGraph>, RedisError>
    readonly explain: (taskId: string) => Effect.Effect<Option.Option<Explanation>, RedisError>
  }
>()("svc/ExecutionGraphService") {}

/**
 * Reads what the stores hold. Observations, dead letters and the broker are asked where they are provided; without them
 * graphs are partial.
 */
export const layer = (options: Options): Layer.Layer<ExecutionGraphService, SettingsError, StatusStore> =>
  Layer.effect(
    ExecutionGraphService,
    Effect.gen(function* () {
      const findings = new Findings()
      const childrenLimit = findings.integer("childrenLimit", options.childrenLimit, 0, 10_000) ?? 1_000
      const deadLetterLimit = findings.integer("deadLetterLimit", options.deadLetterLimit, 1, 200) ?? 200
      const evidenceLimit = findings.integer("evidenceLimit", options.evidenceLimit, 100, 1_000_000) ?? 20_000
      if (findings.mistakes.length > 0) return yield* SettingsError.of("ExecutionGraphService", findings.mistakes)
      const { otherTopologies = [], topology, terminalStatuses = new TerminalStatusSet() } = options
      const inboxes = new Inboxes([topology, ...otherTopologies])
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
              // the first page has no cursor that could be wrong
              Effect.catch((error) => (error._tag === "RedisError" ? Effect.fail(error) : Effect.die(error)))
            )
        })

      const evidenceOf = (taskId: string): Effect.Effect<TaskEvidence, RedisError> =>
        Effect.all(
          {
            taskId: Effect.succeed(taskId),
            statuses: statusStore.history(taskId),
            observations: Option.match(observationStore, {
              onNone: () => Effect.succeed(noObservations),
              onSome: ({ history }) => history(taskId)
            }),
            deadLetters: deadLettersOf(taskId)
          },
          { concurrency: "unbounded" }
        )

      const childrenOf = Effect.fnUntraced(function* (taskIds: ReadonlyArray<string>, spent: number) {
        const found: Array<TaskEvidence> = []
        let entries = spent
        for (let next = 0; next < taskIds.length && entries < evidenceLimit; next += atOnce) {
          const some = yield* Effect.forEach(taskIds.slice(next, next + atOnce), evidenceOf, { concurrency: atOnce })
          for (const one of some) {
            if (entries >= evidenceLimit) break
            found.push(one)
            entries += entriesIn(one)
          }
        }
        return found
      })

      /** One child more than is shown tells that there are more. */
      const ownOf = (taskId: string) =>
        Effect.all([evidenceOf(taskId), statusStore.childTaskIds(taskId, { limit: childrenLimit + 1 })], {
          concurrency: 2
        })

      const graph = Effect.fn("ExecutionGraphService.graph")(function* (taskId: string) {
        const [own, ids] = yield* ownOf(taskId)
        const related = ids.slice(0, childrenLimit)
        const tasks = [own, ...(yield* childrenOf(related, entriesIn(own)))]
        const leftOut: Array<readonly [IncompleteReason, string]> = [
          ...(ids.length > childrenLimit ? [["children_limit_reached", taskId] as const] : []),
          ...related.slice(tasks.length - 1).map((id) => ["evidence_limit_reached", id] as const),
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

      const whereIs = ({ deadLetters, observations, statuses }: TaskEvidence, isRelated: boolean) =>
        whereabouts({
          inboxes,
          observations: Evidence.observations(observations).entries,
          statuses: Evidence.statuses(statuses).entries,
          deadLetters: deadLetters.items,
          isRelated,
          isTerminal: (status) => terminalStatuses.has(status)
        })

      const explanation = Effect.fn("ExecutionGraphService.explain")(function* (taskId: string) {
        const [own, ids] = yield* ownOf(taskId)
        const where = whereIs(own, ids.length > 0)
        const now = yield* Clock.currentTimeMillis
        const related = childrenSayMore(where) ? yield* childrenOf(ids.slice(0, childrenLimit), entriesIn(own)) : []
        if ([own, ...related].every((one) => entriesIn(one) === 0)) return Option.none()
        const children: Children = {
          looked: related.length,
          more: related.length < ids.length,
          open: openChildren(
            related.map((child) => [child.taskId, whereIs(child, true)]),
            now
          )
        }
        const queue = queueToInspect(where, now)
        const inspection = queue === undefined ? "unavailable" : yield* inspect(queue)
        return Option.some(explain(taskId, where, { inspection, children }, now))
      })

      return ExecutionGraphService.of({ graph, explain: explanation })
    })
  )

/** What the stores hold of one task. */
interface TaskEvidence {
  readonly taskId: string
  readonly statuses: StatusHistory
  readonly observations: ObservationHistory
  readonly deadLetters: { readonly items: ReadonlyArray<DeadLetterSummary>; readonly more: boolean }
}

const entriesIn = ({ deadLetters, observations, statuses }: TaskEvidence): number =>
  statuses.events.length + observations.events.length + deadLetters.items.length

/** Children whose evidence is read together. */
const atOnce = 16

const noObservations: ObservationHistory = { events: [], oldest: 0 }
const noLetters: ReadonlyArray<DeadLetterSummary> = []

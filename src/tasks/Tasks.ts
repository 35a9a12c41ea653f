import { Layer } from "effect"
import type * as StatusRuntime from "../graph/StatusRuntime.ts"
import { Topology } from "../messaging/topology/Topology.ts"
import type { Broker } from "../services/Broker.ts"
import type { Redis } from "../services/Redis.ts"
import { TerminalStatusSet } from "../status/store/TerminalStatusSet.ts"

/** The prefixes of the Redis keys of the stores. Workers and routers must use the same ones. */
export interface StorePrefixes {
  /** Default: `svc`. */
  readonly statuses?: string
  /** Default: `svc`. */
  readonly deadLetters?: string
  /** Default: `svc-observations`. */
  readonly observations?: string
}

export interface TasksOptions<E> {
  /** At least one. All of them must publish their statuses to the same exchange and queue. */
  readonly topologies: readonly [Topology, ...ReadonlyArray<Topology>]
  /**
   * Runs the workers, in the roles `messaging` and `all`. Consumers whose options name no `dlqStore` and no
   * `observationSink` record dead letters and observations in the stores of the role.
   */
  readonly workers: Layer.Layer<never, E, Broker | Redis>
  /** The statuses that end a task. Default: `completed` and `failed`. */
  readonly terminalStatuses?: ReadonlyArray<string>
  readonly prefixes?: StorePrefixes
  /** Queues that workers declare beside those of the topologies, such as the queues of shards. Metrics show them too. */
  readonly otherQueues?: ReadonlyArray<string>
  /** Options of the status runtime that have no better place here, such as `storeTtlSeconds`. */
  readonly runtime?: Omit<StatusRuntime.Options, OwnOptions>
}

type OwnOptions =
  | "topology"
  | "otherTopologies"
  | "sseTerminalStatuses"
  | "storePrefix"
  | "dlqStorePrefix"
  | "observationStorePrefix"
  | "sseMaxOpenStreams"
  | "sseMaxOpenStreamsPerAddress"

/** The tasks of an installation, for the roles `messaging`, `status`, `graph` and `all`. */
export interface Tasks {
  readonly [brand]: true
  readonly workers: Layer.Layer<never, unknown, Broker | Redis>
  readonly runtime: RuntimeOptions
  /** All queues of the workers, each with its dead-letter queue. */
  readonly queues: ReadonlyArray<string>
}

/** A role has all three stores. */
type RuntimeOptions = StatusRuntime.Options & {
  readonly dlqStorePrefix: string | undefined
  readonly observationStorePrefix: string | undefined
}

const brand: unique symbol = Symbol.for("svc-runtime/Tasks")

export const isTasks = (value: unknown): value is Tasks =>
  typeof value === "object" && value !== null && brand in value && value[brand] === true

/** The options of `defineTasks` contradict each other. */
export class TasksError extends Error {
  override readonly name = "TasksError"
}

/**
 * Defines the tasks that `svc-runtime messaging --tasks ./tasks.ts` runs, and that the roles `status` and `graph` show.
 * The module exports the result as `default` or as `tasks`. Throws a `TasksError` that names all mistakes.
 *
 * ```ts
 * const topology = new SharedTasksSharedStatusTopology({ tasks_exchange: "shop", tasks_queue: "shop.mails", … })
 * const workers = TaskConsumer.layer({ handler, retryPolicy: new RetryPolicy() }).pipe(
 *   Layer.provide(BrokerClient.layer({ topology }))
 * )
 * export default defineTasks({ topologies: [topology], workers })
 * ```
 */
export const defineTasks = <E>(options: TasksOptions<E>): Tasks => {
  const mistakes = mistakesIn(options)
  if (mistakes.length > 0) throw new TasksError(`The tasks are invalid: ${mistakes.join("; ")}`)
  const { otherQueues = [], prefixes = {}, runtime, terminalStatuses, topologies, workers } = options
  const [topology, ...otherTopologies] = topologies
  return {
    [brand]: true,
    workers,
    queues: [...topologies.flatMap(ownQueues), ...otherQueues].flatMap((name) => [name, `${name}.dlq`]),
    runtime: {
      ...runtime,
      topology,
      otherTopologies,
      ...(terminalStatuses !== undefined && { sseTerminalStatuses: new TerminalStatusSet(terminalStatuses) }),
      ...(prefixes.statuses !== undefined && { storePrefix: prefixes.statuses }),
      dlqStorePrefix: prefixes.deadLetters,
      observationStorePrefix: prefixes.observations
    }
  }
}

const ownQueues = ({ queues, status }: Topology): ReadonlyArray<string> =>
  queues.flatMap(({ name }) => (name === status.queue ? [] : [name]))

/** A module in JavaScript may pass anything, so that what the types forbid is checked too. */
const mistakesIn = ({ topologies, workers }: TasksOptions<unknown>): ReadonlyArray<string> => {
  if (!Array.isArray(topologies) || topologies.length === 0) {
    return ["topologies must be a list of at least one topology"]
  }
  const foreign = topologies.flatMap((topology, index) =>
    topology instanceof Topology ? [] : [`topologies[${index}] is no topology of svc-runtime/messaging`]
  )
  if (foreign.length > 0) return foreign
  return [...statusMistakes(topologies), ...queueMistakes(topologies), ...workerMistakes(workers)]
}

const statusMistakes = ([first, ...others]: TasksOptions<unknown>["topologies"]): ReadonlyArray<string> =>
  others.flatMap(({ status }, index) =>
    status.queue === first.status.queue && status.exchange === first.status.exchange
      ? []
      : [
          `topologies[${index + 1}] has the status exchange ${status.exchange} and the status queue ${status.queue}, but topologies[0] has ${first.status.exchange} and ${first.status.queue}: one hub reads the statuses of all, so they must be the same`
        ]
  )

/** Two topologies that consume one queue would take each other's messages. */
const queueMistakes = (topologies: ReadonlyArray<Topology>): ReadonlyArray<string> => {
  const owners = new Map<string, number>()
  return topologies.flatMap((topology, index) =>
    ownQueues(topology).flatMap((name) => {
      const owner = owners.get(name)
      owners.set(name, index)
      return owner === undefined ? [] : [`topologies[${owner}] and topologies[${index}] both have the queue ${name}`]
    })
  )
}

const workerMistakes = (workers: unknown): ReadonlyArray<string> =>
  Layer.isLayer(workers) ? [] : ["workers must be a Layer, such as TaskConsumer.layer(…)"]

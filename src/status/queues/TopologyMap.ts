import { Context, Effect, Layer, Result } from "effect"
import { ControlStore } from "../../messaging/control/ControlStore.ts"
import * as Aggregation from "../../messaging/topology/Aggregation.ts"
import { TaskTopology } from "../../messaging/topology/TaskTopology.ts"
import { declarations, type Topology } from "../../messaging/topology/Topology.ts"
import { topologyGraph } from "../../messaging/topology/TopologyGraph.ts"
import { SharedStatusWorkflowTopology } from "../../messaging/topology/WorkflowTopology.ts"
import { Broker, type BrokerError, type Declarations, type Examination } from "../../services/Broker.ts"

/** An exchange or a queue of the topologies, compared with the broker. `unknown`: the broker does not respond. */
export interface MappedObject {
  readonly name: string
  readonly live: "same" | "missing" | "differs" | "unknown"
  /** How the broker's object differs. */
  readonly differs: string | null
}

export interface TopologyView {
  readonly exchanges: ReadonlyArray<MappedObject & { readonly kind: string }>
  readonly queues: ReadonlyArray<MappedObject>
  /** AMQP does not tell which bindings exist. */
  readonly bindings: ReadonlyArray<{ readonly exchange: string; readonly queue: string; readonly routing_key: string }>
  readonly stages: ReadonlyArray<{
    readonly name: string
    readonly queue: string
    readonly next: ReadonlyArray<string>
  }>
}

/** Shows the exchanges, queues and stages of the topologies, and whether the broker has them so. */
export class TopologyMap extends Context.Service<TopologyMap, { readonly view: Effect.Effect<TopologyView> }>()(
  "svc/status/TopologyMap"
) {}

const examineTimeout = "2 seconds"
const concurrency = 16
/** Objects of a topology change rarely, and each is a request to the broker. */
const cacheTtl = "10 seconds"

export const layer = (topologies: ReadonlyArray<Topology>): Layer.Layer<TopologyMap, never, Broker | ControlStore> =>
  Layer.effect(
    TopologyMap,
    Effect.gen(function* () {
      const { examine } = yield* Broker
      const { groups } = yield* ControlStore
      const planned = topologies.map(declarations)
      const view = Effect.gen(function* () {
        const announced = yield* Effect.orElseSucceed(groups, () => [])
        const all = [...planned, ...announced.flatMap(({ queue }) => aggregationOf(topologies, queue))]
        const exchanges = unique(all.flatMap((one) => one.exchanges))
        const queues = unique(all.flatMap((one) => one.queues))
        const examined = yield* Effect.all(
          {
            exchanges: Effect.forEach(exchanges, (exchange) => liveOf(examine({ exchange })), { concurrency }),
            queues: Effect.forEach(queues, (queue) => liveOf(examine({ queue })), { concurrency })
          },
          { concurrency: 2 }
        )
        return {
          exchanges: exchanges.map(({ kind, name }, place) => ({
            name,
            kind,
            ...(examined.exchanges[place] ?? unknown)
          })),
          queues: queues.map(({ name }, place) => ({ name, ...(examined.queues[place] ?? unknown) })),
          bindings: all.flatMap(({ bindings }) =>
            bindings.map(({ exchange, queue, routingKey }) => ({ exchange, queue, routing_key: routingKey }))
          ),
          stages: topologies.flatMap(stagesOf)
        }
      })
      return TopologyMap.of({ view: yield* Effect.cachedWithTTL(view, cacheTtl) })
    })
  )

type Live = Omit<MappedObject, "name">

const unknown: Live = { live: "unknown", differs: null }

const liveOf = (examination: Effect.Effect<Examination, BrokerError>): Effect.Effect<Live> =>
  Effect.match(Effect.timeout(examination, examineTimeout), {
    onFailure: () => unknown,
    onSuccess: (found): Live => {
      switch (found._tag) {
        case "Same":
          return { live: "same", differs: null }
        case "Missing":
          return { live: "missing", differs: null }
        case "Differs":
          return { live: "differs", differs: found.differs }
      }
    }
  })

/** Topologies share exchanges and the status queue. */
const unique = <A extends { readonly name: string }>(objects: ReadonlyArray<A>): ReadonlyArray<A> => [
  ...new Map(objects.map((one) => [one.name, one])).values()
]

/**
 * A topology does not tell which worker serves which shards, so the aggregation queues are those that workers announce.
 * Topologies may share them, so the first one that knows the queue describes it.
 */
const aggregationOf = (topologies: ReadonlyArray<Topology>, queue: string): ReadonlyArray<Declarations> => {
  for (const topology of topologies) {
    if (!(topology instanceof TaskTopology) || topology.aggregation === undefined) continue
    const shards = Aggregation.shardsOfQueue(topology.aggregation, queue)
    if (shards === undefined) continue
    const found = Aggregation.aggregationQueueOf(topology, shards, queue)
    if (Result.isSuccess(found)) return [found.success.declarations]
  }
  return []
}

const stagesOf = (topology: Topology): TopologyView["stages"] => {
  if (!(topology instanceof SharedStatusWorkflowTopology)) return []
  const { edges, stages } = topologyGraph(topology)
  return stages.map(({ name, queue }) => ({
    name,
    queue,
    next: edges.flatMap(({ source, target }) => (source === name ? [target] : []))
  }))
}

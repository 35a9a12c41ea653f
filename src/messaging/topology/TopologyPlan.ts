import { Effect } from "effect"
import {
  Broker,
  type BrokerError,
  type Declarations,
  type Examination,
  type Exchange,
  type Queue
} from "../../services/Broker.ts"
import { type Mistake, TopologyError } from "../envelope/Errors.ts"
import { declarations, type Topology, type VersionCheck } from "./Topology.ts"

/** An exchange or a queue of a topology, compared with the object on the broker. */
export interface Step {
  readonly object: "exchange" | "queue"
  readonly name: string
  readonly examination: Examination
}

/** The result of comparing a topology with a broker. Nothing is declared. */
export interface TopologyPlan {
  /** The exchanges and queues in the order in which they are declared. */
  readonly steps: ReadonlyArray<Step>
  /** The number of bindings. A client cannot read existing bindings. Declaring an existing binding is a no-op. */
  readonly bindings: number
  /** Parameters that this RabbitMQ release always refuses. */
  readonly refusals: ReadonlyArray<Mistake>
  readonly warnings: ReadonlyArray<Mistake>
  /** True if declaring the topology would succeed. */
  readonly isPossible: boolean
}

/** Compares a topology with the connected broker, without declaring anything. */
export const plan = Effect.fn("TopologyPlan.plan")(function* (
  topology: Topology
): Effect.fn.Return<TopologyPlan, BrokerError, Broker> {
  const broker = yield* Broker
  const { version } = yield* broker.server
  const declared = declarations(topology)
  const steps = yield* examineAll(broker, declared)
  const check = topology.check(version)
  return make(declared, steps, {
    refusals: check.refusals,
    warnings: [...topology.warnings, ...check.warnings]
  })
})

export const make = (
  declared: Declarations,
  steps: ReadonlyArray<Step>,
  { refusals, warnings }: VersionCheck
): TopologyPlan => ({
  steps,
  bindings: declared.bindings.length,
  refusals,
  warnings,
  isPossible: refusals.length === 0 && steps.every(({ examination }) => examination._tag !== "Differs")
})

/**
 * Declares exchanges, queues and bindings. If existing objects differ, fails with a `TopologyError` that lists all
 * differences and remedies. The broker itself would report only the first difference.
 */
export const declare = Effect.fn("TopologyPlan.declare")(
  (
    broker: Broker["Service"],
    { kind }: { readonly kind: string },
    declared: Declarations
  ): Effect.Effect<void, TopologyError | BrokerError> =>
    Effect.catchIf(
      broker.declare(declared),
      ({ reason }) => reason === "mismatch",
      (error) =>
        Effect.flatMap(examineAll(broker, declared), (steps) => {
          const found = differences(steps)
          return Effect.fail(found.length === 0 ? error : TopologyError.of(kind, found))
        })
    )
)

const examineAll = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  declared: Declarations
): Effect.fn.Return<ReadonlyArray<Step>, BrokerError> {
  const exchanges = yield* Effect.forEach(declared.exchanges, (exchange) =>
    Effect.map(broker.examine({ exchange }), (examination) => stepOf("exchange", exchange, examination))
  )
  const queues = yield* Effect.forEach(declared.queues, (queue) =>
    Effect.map(broker.examine({ queue }), (examination) => stepOf("queue", queue, examination))
  )
  return [...exchanges, ...queues]
})

const differences = (steps: ReadonlyArray<Step>): ReadonlyArray<Mistake> =>
  steps.flatMap(({ examination, name, object }) =>
    examination._tag === "Differs"
      ? [{ field: `${object} ${name}`, problem: `exists and differs: ${examination.differs}. ${remedy[object]}` }]
      : []
  )

/** Renders a plan as text: one line per object, and a remedy for each conflict. */
export const render = (plan: TopologyPlan): string =>
  [
    ...plan.refusals.map(({ field, problem }) => `refused    ${field} ${problem}`),
    ...plan.steps.map(renderStep),
    `declare    ${plan.bindings} ${plan.bindings === 1 ? "binding" : "bindings"} (declaring an existing binding changes nothing)`,
    ...plan.warnings.map(({ field, problem }) => `warning    ${field} ${problem}`),
    plan.isPossible
      ? "Declaring this topology will succeed."
      : "Declaring this topology will fail, and nothing was changed. Resolve the refused and differing lines above first."
  ].join("\n")

const renderStep = ({ examination, name, object }: Step): string => {
  switch (examination._tag) {
    case "Missing":
      return `declare    ${object} ${name}`
    case "Same":
      return `exists     ${object} ${name}`
    case "Differs":
      return `differs    ${object} ${name}: ${examination.differs}\n           ${remedy[object]}.`
  }
}

const remedy = {
  exchange: "Use another exchange name, or stop all users of this exchange, delete it and declare it again",
  queue:
    "Revert the change, or use another queue name and let the old queue drain, or delete the queue once it is empty"
}

const stepOf = (object: Step["object"], { name }: Exchange | Queue, examination: Examination): Step => ({
  object,
  name,
  examination
})

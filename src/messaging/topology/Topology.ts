import type { Redacted } from "effect"
import type { Binding, Declarations, Exchange, Queue } from "../../services/Broker.ts"
import type { Mistake } from "../envelope/Errors.ts"
import * as BrokerCapabilities from "./BrokerCapabilities.ts"
import { fieldOfArgument, type QueueFamily, rabbitmqUrl, type ValidationIssues } from "./Parameters.ts"
import * as QueueArguments from "./QueueArguments.ts"
import * as StatusPlane from "./StatusPlane.ts"

export type TopologyKind =
  | "shared_tasks_shared_status"
  | "shared_tasks_shared_status_sharded_aggregation"
  | "routed_tasks_shared_status"
  | "routed_tasks_shared_status_sharded_aggregation"
  | "shared_status_workflow"

/** What one release of the broker makes of a topology. */
export interface VersionCheck {
  /** The broker would refuse the declaration. */
  readonly refusals: ReadonlyArray<Mistake>
  /** The broker would take it, and do nothing with it. */
  readonly warnings: ReadonlyArray<Mistake>
}

/**
 * What the five kinds have in common. A topology is a value: it is checked whole when it is made, and its constructor
 * throws a `TopologyError` with every mistake at once. Parameters keep the names of the specification
 * (`tasks_message_ttl_ms`), because its tables, the errors and other languages' deployments name them so.
 */
export abstract class Topology {
  abstract readonly kind: TopologyKind
  readonly rabbitmqUrl: Redacted.Redacted | undefined
  readonly status: StatusPlane.StatusPlane
  readonly deadLetterExchange: string | undefined
  readonly prefetchCount: number
  /** What would be taken and has no effect on any release; `check` adds what depends on the release. */
  readonly warnings: ReadonlyArray<Mistake>

  constructor(parameters: StatusPlane.StatusParameters, findings: ValidationIssues) {
    this.rabbitmqUrl = rabbitmqUrl(parameters.rabbitmq_url, findings)
    this.status = StatusPlane.make(parameters, findings)
    this.prefetchCount = findings.checkInteger("prefetch_count", parameters.prefetch_count, 1, 65_535) ?? 1
    this.deadLetterExchange = parameters.dead_letter_exchange
    if (this.deadLetterExchange !== undefined) findings.checkName("dead_letter_exchange", this.deadLetterExchange)
    this.warnings = findings.warnings
  }

  /** In the order of declaring: dead letters, work, statuses. */
  abstract readonly exchanges: ReadonlyArray<Exchange>
  /** The status queue, then the queues of work. */
  abstract readonly queues: ReadonlyArray<Queue>
  abstract readonly bindings: ReadonlyArray<Binding>
  /** Of every queue that this topology may declare. */
  abstract readonly families: ReadonlyArray<QueueFamily>

  /** What depends on the release of the broker, which its connection tells. */
  check(version: string): VersionCheck {
    const capabilities = BrokerCapabilities.of(version)
    if (capabilities === undefined) {
      const problem = `${version} is no RabbitMQ of 3.10 or newer: what it makes of this topology is not known`
      return { refusals: [], warnings: [{ field: "broker", problem }] }
    }
    const found = this.families.flatMap((family) => checkFamily(family, capabilities))
    const on = ` (RabbitMQ ${version})`
    const withStanding = (standing: QueueArguments.Finding["standing"]) =>
      found.flatMap(({ field, problem, ...found }) =>
        found.standing === standing ? [{ field, problem: problem + on }] : []
      )
    return { refusals: withStanding("refused"), warnings: withStanding("inert") }
  }
}

/** Everything of a topology: what a worker declares. */
export const declarations = ({ bindings, exchanges, queues }: Topology): Declarations => ({
  bindings,
  exchanges,
  queues
})

/**
 * For who only publishes: the exchanges, which must be there, and no queue, since queues belong to those who work on
 * them. Until one of them has declared its queue, publishes are returned as unroutable instead of being lost unseen.
 */
export const exchangesOnly = ({ exchanges }: Topology): Declarations => ({ exchanges, queues: [], bindings: [] })

const checkFamily = (family: QueueFamily, capabilities: BrokerCapabilities.BrokerCapabilities) => {
  const found = QueueArguments.examineFor(family.arguments, capabilities.release).map(
    ({ argument, problem, standing }) => ({ field: fieldOfArgument(family.sources, argument), problem, standing })
  )
  const needsQuorumPriority = family.queueType === "quorum" && family.maxPriority !== undefined
  return needsQuorumPriority && capabilities.quorumPriority === "none"
    ? [
        ...found,
        {
          field: family.priorityField,
          problem: "needs a classic queue before RabbitMQ 4.0: quorum queues know no priorities",
          standing: "refused" as const
        }
      ]
    : found
}

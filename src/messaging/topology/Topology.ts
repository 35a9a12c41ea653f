import type { Redacted } from "effect"
import type { Binding, Declarations, Exchange, Queue } from "../../services/Broker.ts"
import type { Mistake } from "../envelope/Errors.ts"
import * as BrokerCapabilities from "./BrokerCapabilities.ts"
import { fieldOfArgument, type QueueFamily, rabbitmqUrl, type ValidationIssues } from "./Parameters.ts"
import * as QueueArguments from "./QueueArguments.ts"
import * as StatusPlane from "./StatusPlane.ts"

type TopologyKind =
  | "shared_tasks_shared_status"
  | "shared_tasks_shared_status_sharded_aggregation"
  | "routed_tasks_shared_status"
  | "routed_tasks_shared_status_sharded_aggregation"
  | "shared_status_workflow"

/** The result of checking a topology against one release of the broker. */
export interface VersionCheck {
  /** Parameters that make the broker refuse a declaration. */
  readonly refusals: ReadonlyArray<Mistake>
  /** Parameters that the broker accepts but ignores. */
  readonly warnings: ReadonlyArray<Mistake>
}

/**
 * The base class of the five topologies. A topology is an immutable value. Its constructor throws a `TopologyError`
 * that lists all invalid parameters. The names of the parameters, such as `tasks_message_ttl_ms`, come from the
 * specification, because deployments in other languages use them too.
 */
export abstract class Topology {
  abstract readonly kind: TopologyKind
  readonly rabbitmqUrl: Redacted.Redacted | undefined
  readonly status: StatusPlane.StatusPlane
  readonly deadLetterExchange: string | undefined
  readonly prefetchCount: number
  /** Parameters that every RabbitMQ release ignores. `check` returns the parameters that a given release ignores. */
  readonly warnings: ReadonlyArray<Mistake>

  constructor(parameters: StatusPlane.StatusParameters, issues: ValidationIssues) {
    this.rabbitmqUrl = rabbitmqUrl(parameters.rabbitmq_url, issues)
    this.status = StatusPlane.make(parameters, issues)
    this.prefetchCount = issues.checkInteger("prefetch_count", parameters.prefetch_count, 1, 65_535) ?? 1
    this.deadLetterExchange = parameters.dead_letter_exchange
    if (this.deadLetterExchange !== undefined) issues.checkName("dead_letter_exchange", this.deadLetterExchange)
    this.warnings = issues.warnings
  }

  abstract readonly exchanges: ReadonlyArray<Exchange>
  /** All queues: the status queue first, then the work queues. */
  abstract readonly queues: ReadonlyArray<Queue>
  abstract readonly bindings: ReadonlyArray<Binding>
  /** The arguments of all queues that this topology may declare, grouped by kind of queue. */
  abstract readonly families: ReadonlyArray<QueueFamily>

  /** Checks the topology against a broker release, such as `"3.12.4"`. */
  check(version: string): VersionCheck {
    const capabilities = BrokerCapabilities.of(version)
    if (capabilities === undefined) {
      const problem = `${version} is not RabbitMQ 3.10 or newer, so the topology cannot be checked`
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

/** Returns the declarations of a worker: all exchanges, queues and bindings of the topology. */
export const declarations = ({ bindings, exchanges, queues }: Topology): Declarations => ({
  bindings,
  exchanges,
  queues
})

/**
 * Returns the declarations of a client with `publishOnly`. Workers declare the queues. Without queues, the broker
 * returns messages as unroutable and does not drop them silently.
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
          problem: "requires a classic queue before RabbitMQ 4.0: quorum queues have no priorities",
          standing: "refused" as const
        }
      ]
    : found
}

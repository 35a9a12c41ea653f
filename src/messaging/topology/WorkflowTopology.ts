import type { Binding, Exchange, Fields, Queue } from "../../services/Broker.ts"
import { argumentFromField, mergeQueueFamily, type QueueFamily, ValidationIssues } from "./Parameters.ts"
import { checkContract, type EntryRouteParameters, type StageContract, type StageParameters } from "./Stage.ts"
import type { StatusParameters } from "./StatusPlane.ts"
import * as TopicPattern from "./TopicPattern.ts"
import { Topology } from "./Topology.ts"

/** `Name` is the type of the stages' names. With it, the compiler finds references to stages that do not exist. */
export interface WorkflowParameters<Name extends string = string> extends StatusParameters {
  readonly workflow_exchange: string
  /** The stages of the workflow, at least one. Each stage has its own inbox queue. */
  readonly stages: ReadonlyArray<StageParameters<Name>>
  /** Named routes by which messages from outside enter the workflow. Default: none. */
  readonly entry_routes?: ReadonlyArray<EntryRouteParameters<NoInfer<Name>>> | undefined
  /** The consumer timeout in ms. Ignored before RabbitMQ 3.12 and on classic queues from 4.3. Default: the broker's. */
  readonly workflow_consumer_timeout_ms?: number | undefined
  /** The queue argument `x-single-active-consumer`. `false` is also sent. Default: the argument is not sent. */
  readonly workflow_single_active_consumer?: boolean | undefined
  /** The highest message priority, 1 to 255. Quorum queues support it from RabbitMQ 4.0 on. Default: no priorities. */
  readonly workflow_max_priority?: number | undefined
  /** The type of the queues. Default: the default queue type of the virtual host, which is usually classic. */
  readonly workflow_queue_type?: "classic" | "quorum" | undefined
  /** Raw arguments of the queues of all stages, in addition to the options of each stage. Default: none. */
  readonly workflow_queue_arguments_overrides?: Fields | undefined
  readonly workflow_queue_kwargs?: Fields | undefined
}

export interface Stage {
  readonly name: string
  readonly queue: string
  readonly bindingKeys: ReadonlyArray<string>
  readonly publishRoutingKey: string
  readonly contract: StageContract
  readonly family: QueueFamily
}

export interface EntryRoute {
  readonly name: string
  readonly routingKey: string
  readonly targetStage: string
}

/** One topic exchange for the workflow, one durable inbox queue per stage, and one shared status queue or stream. */
export class SharedStatusWorkflowTopology<const Name extends string = string> extends Topology {
  readonly kind = "shared_status_workflow"
  readonly workflowExchange: string
  readonly stages: ReadonlyArray<Stage>
  readonly entryRoutes: ReadonlyArray<EntryRoute>
  readonly exchanges: ReadonlyArray<Exchange>
  readonly queues: ReadonlyArray<Queue>
  readonly bindings: ReadonlyArray<Binding>
  readonly families: ReadonlyArray<QueueFamily>

  constructor(parameters: WorkflowParameters<Name>) {
    const issues = new ValidationIssues()
    super(parameters, issues)
    const { deadLetterExchange, status } = this
    this.workflowExchange = issues.checkName("workflow_exchange", parameters.workflow_exchange)
    issues.checkDifferent([
      ["workflow_exchange", this.workflowExchange],
      ["status_exchange", status.exchange],
      ["dead_letter_exchange", deadLetterExchange]
    ])
    issues.checkMillis("workflow_consumer_timeout_ms", parameters.workflow_consumer_timeout_ms)
    const names = new Set(parameters.stages.map(({ name }) => name))
    this.stages = parameters.stages.map((stage, index) => readStage(stage, index, parameters, names, issues))
    this.entryRoutes = (parameters.entry_routes ?? []).map((entry, index) =>
      readEntry(entry, index, this.stages, issues)
    )
    checkUniqueNames(this, issues)
    this.families = [status.family, ...this.stages.map(({ family }) => family)]
    this.exchanges = [
      ...(deadLetterExchange === undefined ? [] : [{ name: deadLetterExchange, kind: "fanout" as const }]),
      { name: this.workflowExchange, kind: "topic" },
      { name: status.exchange, kind: "topic" }
    ]
    this.queues = [
      { name: status.queue, arguments: status.family.arguments },
      ...this.stages.map(({ family, queue }) => ({ name: queue, arguments: family.arguments }))
    ]
    this.bindings = [
      { exchange: status.exchange, queue: status.queue, routingKey: "#" },
      ...this.stages.flatMap(({ bindingKeys, queue }) =>
        bindingKeys.map((routingKey) => ({ exchange: this.workflowExchange, queue, routingKey }))
      )
    ]
    issues.throwTopologyError("SharedStatusWorkflowTopology")
  }
}

const readStage = (
  stage: StageParameters,
  index: number,
  parameters: WorkflowParameters,
  names: ReadonlySet<string>,
  issues: ValidationIssues
): Stage => {
  const { binding_keys, name, publish_routing_key, queue, queue_arguments_overrides, queue_kwargs, ...contract } = stage
  const at = `stages[${index}]`
  if (name.trim() === "") issues.addMistake(`${at}.name`, "must not be blank")
  const bindingKeys = [
    ...new Set(binding_keys.map((key, index) => issues.checkKey(`${at}.binding_keys[${index}]`, key, "allowed")))
  ].filter((key) => key !== "")
  if (bindingKeys.length === 0) issues.addMistake(`${at}.binding_keys`, "must contain a key that is not blank")
  const publishRoutingKey = issues.checkKey(`${at}.publish_routing_key`, publish_routing_key)
  if (bindingKeys.length > 0 && publishRoutingKey !== "" && !matchesAny(bindingKeys, publishRoutingKey)) {
    issues.addMistake(
      `${at}.publish_routing_key`,
      `matches none of its binding_keys (${bindingKeys.join(", ")}), so no message would arrive`
    )
  }
  checkContract(at, contract, names, issues)
  return {
    name,
    queue: issues.checkName(`${at}.queue`, queue),
    bindingKeys,
    publishRoutingKey,
    contract,
    family: mergeQueueFamily(
      "workflow",
      "workflow_max_priority",
      [
        argumentFromField("workflow_queue_type", "x-queue-type", parameters.workflow_queue_type),
        argumentFromField("dead_letter_exchange", "x-dead-letter-exchange", parameters.dead_letter_exchange),
        argumentFromField(
          "workflow_consumer_timeout_ms",
          "x-consumer-timeout",
          parameters.workflow_consumer_timeout_ms
        ),
        argumentFromField(
          "workflow_single_active_consumer",
          "x-single-active-consumer",
          parameters.workflow_single_active_consumer
        ),
        argumentFromField("workflow_max_priority", "x-max-priority", parameters.workflow_max_priority),
        { field: "workflow_queue_arguments_overrides", arguments: parameters.workflow_queue_arguments_overrides },
        { field: "workflow_queue_kwargs", arguments: parameters.workflow_queue_kwargs },
        { field: `${at}.queue_arguments_overrides`, arguments: queue_arguments_overrides },
        { field: `${at}.queue_kwargs`, arguments: queue_kwargs }
      ],
      issues
    )
  }
}

const readEntry = (
  entry: EntryRouteParameters,
  index: number,
  stages: ReadonlyArray<Stage>,
  issues: ValidationIssues
): EntryRoute => {
  const at = `entry_routes[${index}]`
  if (entry.name.trim() === "") issues.addMistake(`${at}.name`, "must not be blank")
  const routingKey = issues.checkKey(`${at}.routing_key`, entry.routing_key)
  const target = stages.find(({ name }) => name === entry.target_stage)
  if (target === undefined) {
    issues.addMistake(`${at}.target_stage`, `names ${entry.target_stage}, which is not a stage`)
  } else if (routingKey !== "" && target.bindingKeys.length > 0 && !matchesAny(target.bindingKeys, routingKey)) {
    const keys = target.bindingKeys.join(", ")
    issues.addMistake(`${at}.routing_key`, `matches none of the binding_keys of ${target.name} (${keys})`)
  }
  return { name: entry.name, routingKey, targetStage: entry.target_stage }
}

const checkUniqueNames = (
  { entryRoutes, stages, status }: SharedStatusWorkflowTopology,
  issues: ValidationIssues
): void => {
  if (stages.length === 0) issues.addMistake("stages", "must contain at least one stage")
  issues.checkDifferent(stages.map(({ name }, index) => [`stages[${index}].name`, name]))
  issues.checkDifferent([
    ["status_queue", status.queue],
    ...stages.map(({ queue }, index) => [`stages[${index}].queue`, queue] as const)
  ])
  issues.checkDifferent(entryRoutes.map(({ name }, index) => [`entry_routes[${index}].name`, name]))
}

const matchesAny = (bindingKeys: ReadonlyArray<string>, routingKey: string): boolean =>
  bindingKeys.some((pattern) => TopicPattern.matches(pattern, routingKey))

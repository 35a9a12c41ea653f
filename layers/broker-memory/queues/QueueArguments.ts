import type { Field, Fields, Queue } from "../../../src/services/Broker.ts"
import { describeResource, refuse } from "./ChannelException.ts"
import { describeDifference, typeOf } from "./Fields.ts"

export type QueueKind = "classic" | "quorum" | "stream"

const kinds: ReadonlyArray<string> = ["classic", "quorum", "stream"]

/** Returns the problem in RabbitMQ's wording, or `undefined` if there is none. */
type Check = (value: Field, all: Fields) => string | undefined

interface Rule {
  readonly queueKinds: ReadonlyArray<QueueKind>
  readonly check: Check
}

const unacceptable = (value: Field) => `{unacceptable_type,${typeOf(value)}}`

const integerFrom =
  (lowest: 0 | 1, highest = Infinity): Check =>
  (value) => {
    const number = typeof value === "bigint" ? Number(value) : value
    if (typeof number !== "number" || !Number.isInteger(number)) return `"expected integer, got ${typeOf(value)}"`
    if (number < 0) return `{value_negative,${number}}`
    if (number < lowest) return `{value_zero,${number}}`
    return number > highest ? `{max_value_exceeded,${number}}` : undefined
  }

const anyInteger: Check = (value) =>
  typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value))
    ? undefined
    : `"expected integer, got ${typeOf(value)}"`

const oneOf =
  (values: ReadonlyArray<string>, otherwise: (value: string) => string): Check =>
  (value) => {
    if (typeof value !== "string") return unacceptable(value)
    return values.includes(value) ? undefined : otherwise(value)
  }

const boolean: Check = (value) => (typeof value === "boolean" ? undefined : unacceptable(value))

const routingKey: Check = (value, all) => {
  if (typeof value !== "string") return unacceptable(value)
  return all["x-dead-letter-exchange"] === undefined ? "routing_key_but_no_dlx_defined" : undefined
}

const versions: Check = (value) =>
  value === 1 || value === 2 ? undefined : `"unsupported queue version '${String(value)}'"`

const text: Check = (value) => (typeof value === "string" ? undefined : unacceptable(value))

const locators = ["client-local", "min-masters", "random", "balanced", "least-leaders"]

const allKinds = ["classic", "quorum", "stream"] as const
const workQueueKinds = ["classic", "quorum"] as const

/** RabbitMQ 3.10 compares arguments in this order. It accepts and ignores unknown arguments. */
const rules: ReadonlyMap<string, Rule> = new Map(
  Object.entries({
    "x-expires": { queueKinds: workQueueKinds, check: integerFrom(1) },
    "x-message-ttl": { queueKinds: workQueueKinds, check: integerFrom(0) },
    "x-dead-letter-exchange": { queueKinds: workQueueKinds, check: text },
    "x-dead-letter-routing-key": { queueKinds: workQueueKinds, check: routingKey },
    "x-dead-letter-strategy": {
      queueKinds: ["quorum"],
      check: oneOf(["at-most-once", "at-least-once"], () => "invalid_dlx_strategy")
    },
    "x-max-length": { queueKinds: workQueueKinds, check: integerFrom(0) },
    "x-max-length-bytes": { queueKinds: allKinds, check: integerFrom(0) },
    "x-max-priority": { queueKinds: ["classic"], check: integerFrom(0, 255) },
    "x-overflow": {
      queueKinds: workQueueKinds,
      check: oneOf(["drop-head", "reject-publish", "reject-publish-dlx"], () => "invalid_overflow")
    },
    "x-queue-mode": {
      queueKinds: ["classic"],
      check: oneOf(["default", "lazy"], (mode) => `"unsupported queue mode '${mode}'"`)
    },
    "x-queue-version": { queueKinds: ["classic"], check: versions },
    "x-single-active-consumer": { queueKinds: workQueueKinds, check: boolean },
    "x-queue-type": { queueKinds: allKinds, check: oneOf(kinds, (kind) => `"unsupported queue type '${kind}'"`) },
    "x-quorum-initial-group-size": { queueKinds: ["quorum"], check: integerFrom(1) },
    "x-delivery-limit": { queueKinds: ["quorum"], check: anyInteger },
    "x-max-age": { queueKinds: ["stream"], check: text },
    "x-stream-max-segment-size-bytes": { queueKinds: ["stream"], check: integerFrom(0) },
    "x-initial-cluster-size": { queueKinds: ["stream"], check: integerFrom(1) },
    "x-queue-leader-locator": {
      queueKinds: ["quorum", "stream"],
      check: oneOf(locators, () => "invalid_queue_locator_arg")
    },
    "x-queue-master-locator": { queueKinds: ["classic"], check: text }
  } satisfies Record<string, Rule>)
)

export const kindOf = ({ arguments: fields }: Queue): QueueKind => {
  const kind = fields?.["x-queue-type"]
  return kind === "quorum" || kind === "stream" ? kind : "classic"
}

const refuseArgument = (queue: Queue, name: string, why: string): never =>
  refuse(406, `invalid arg '${name}' for ${describeResource("queue", queue.name)}${why}`)

/** Refuses the declarations that RabbitMQ 3.10 refuses, with the same messages. */
export const check = (queue: Queue): void => {
  const fields = queue.arguments ?? {}
  if (queue.name.startsWith("amq.")) refuse(403, `queue name '${queue.name}' contains reserved prefix 'amq.*'`)
  const kindProblem = rules.get("x-queue-type")?.check(fields["x-queue-type"] ?? "classic", fields)
  if (kindProblem !== undefined) refuseArgument(queue, "x-queue-type", `: ${kindProblem}`)
  const kind = kindOf(queue)
  for (const [name, { check, queueKinds }] of rules) {
    const value = fields[name]
    if (value === undefined) continue
    if (!queueKinds.includes(kind)) refuseArgument(queue, name, ` of queue type rabbit_${kind}_queue`)
    const problem = check(value, fields)
    if (problem === undefined) continue
    if (name === "x-dead-letter-exchange") {
      refuse(406, `invalid type '${typeOf(value)}' for arg '${name}' in ${describeResource("queue", queue.name)}`)
    }
    refuseArgument(queue, name, `: ${problem}`)
  }
  if (kind === "classic") return
  const property =
    queue.durable === false
      ? "non-durable"
      : queue.autoDelete === true
        ? "auto-delete"
        : queue.exclusive === true
          ? "exclusive-owner"
          : undefined
  if (property !== undefined) refuse(406, `invalid property '${property}' for ${describeResource("queue", queue.name)}`)
}

const differences = (wanted: Queue, current: Queue): ReadonlyArray<readonly [string, string | undefined]> => [
  ["durable", describeDifference(wanted.durable ?? true, current.durable ?? true)],
  ["auto_delete", describeDifference(wanted.autoDelete ?? false, current.autoDelete ?? false)],
  // RabbitMQ does not compare arguments that this type of queue does not support.
  ...Array.from(rules).flatMap(([name, { queueKinds }]) => {
    const alike = name === "x-queue-type" && kindOf(wanted) === kindOf(current)
    if (alike || !queueKinds.includes(kindOf(current))) return []
    return [[name, describeDifference(wanted.arguments?.[name], current.arguments?.[name])] as const]
  })
]

/** Returns how a second declaration differs from the queue, or `undefined` if it does not. */
export const describeInequivalence = (wanted: Queue, current: Queue): string | undefined => {
  const [name, differs] = differences(wanted, current).find(([, differs]) => differs !== undefined) ?? []
  return differs === undefined
    ? undefined
    : `inequivalent arg '${name}' for ${describeResource("queue", wanted.name)}: ${differs}`
}

import type { Field, Fields } from "../../services/Broker.ts"
import { fitsShortString } from "../envelope/Envelope.ts"
import { type Release, releases } from "./BrokerCapabilities.ts"

export type QueueType = "classic" | "quorum" | "stream"

/** Assumes classic for a queue without `x-queue-type`, because clients cannot read the virtual host's default type. */
export const queueTypeOf = (declared: Fields): Field => declared["x-queue-type"] ?? "classic"

/** `refused`: the broker closes the channel with error 406. `inert`: the broker accepts the argument but ignores it. */
type Standing = "accepted" | "refused" | "inert"

export interface Finding {
  readonly argument: string
  readonly standing: Exclude<Standing, "accepted">
  readonly problem: string
}

export const examineForAllReleases = (declared: Fields): ReadonlyArray<Finding> => {
  const [first = [], ...others] = releases.map((release) => examineFor(declared, release))
  return first.filter((finding) =>
    others.every((found) =>
      found.some(({ argument, standing }) => argument === finding.argument && standing === finding.standing)
    )
  )
}

export const examineFor = (declared: Fields, release: Release): ReadonlyArray<Finding> => {
  const type = queueTypeOf(declared)
  if (type !== "classic" && type !== "quorum" && type !== "stream") {
    return [refused("x-queue-type", "must be classic, quorum or stream")]
  }
  return Object.entries(declared).flatMap(([argument, value]) => {
    const rule = rules.get(argument)
    if (rule === undefined) return [unknown(argument)]
    const standing = rule[type](release, value)
    if (standing === "refused") {
      const acceptingTypes = types.filter((type) => rule[type](release, value) !== "refused")
      return [refused(argument, refusal(type, acceptingTypes, rule.instead))]
    }
    const problem = rule.value(value, declared)
    // The value is checked even if this release ignores the argument, because later releases refuse an invalid value.
    if (problem !== undefined) return [refused(argument, problem)]
    return standing === "inert" ? [{ argument, standing, problem: `has no effect on ${type} queues` }] : []
  })
}

const types: ReadonlyArray<QueueType> = ["classic", "quorum", "stream"]

const refused = (argument: string, problem: string): Finding => ({ argument, standing: "refused", problem })

/** RabbitMQ silently ignores unknown arguments. This warning reveals typing errors. */
const unknown = (argument: string): Finding => ({
  argument,
  standing: "inert",
  problem: "is not a known argument of RabbitMQ, which ignores unknown arguments: check its spelling"
})

const refusal = (type: QueueType, takers: ReadonlyArray<QueueType>, instead = "") => {
  const where = takers.length === 0 ? "no queue does" : `only ${takers.join(" and ")} queues do`
  return `is not accepted by ${type} queues: ${where}${instead && `; ${instead}`}`
}

type StandingRule = (release: Release, value: Field) => Standing

interface Rule extends Readonly<Record<QueueType, StandingRule>> {
  readonly value: (value: Field, declared: Fields) => string | undefined
  readonly instead?: string
}

const yes: StandingRule = () => "accepted"
const no: StandingRule = () => "refused"
const ignored: StandingRule = () => "inert"
const sinceRelease =
  (first: Release, then: StandingRule, before: StandingRule): StandingRule =>
  (release, value) =>
    (release >= first ? then : before)(release, value)

/** RabbitMQ refuses longer times, because its timers do not support them. See `rabbit_misc:check_expiry`. */
export const maxMillis = 4_294_967_295

const integer =
  (minimum: number, maximum = Number.MAX_SAFE_INTEGER) =>
  (value: Field): string | undefined =>
    (typeof value === "number" && Number.isInteger(value)) || typeof value === "bigint"
      ? value >= minimum && value <= maximum
        ? undefined
        : `must be ${minimum} or more${maximum === Number.MAX_SAFE_INTEGER ? "" : ` and at most ${maximum}`}`
      : "must be an integer"

const oneOf =
  (...words: ReadonlyArray<string>) =>
  (value: Field): string | undefined =>
    words.some((word) => word === value) ? undefined : `must be one of ${words.join(", ")}`

const boolean = (value: Field): string | undefined => (typeof value === "boolean" ? undefined : "must be true or false")

const shortText = (value: Field): string | undefined =>
  typeof value === "string" && fitsShortString(value) ? undefined : "must be a text of at most 255 bytes"

const age = (value: Field): string | undefined =>
  typeof value === "string" && /^[1-9]\d{0,8}[YMDhms]$/.test(value)
    ? undefined
    : "must be a number with a unit of Y, M, D, h, m or s, such as 7D"

/**
 * The rules for RabbitMQ 3.10.8 were measured. The rules for later releases come from their release notes. On 3.10.8,
 * an invalid `x-max-age` or `x-queue-master-locator` closes the whole connection with error 541.
 */
const rules: ReadonlyMap<string, Rule> = new Map(
  Object.entries<Rule>({
    "x-queue-type": { classic: yes, quorum: yes, stream: yes, value: oneOf("classic", "quorum", "stream") },
    "x-message-ttl": { classic: yes, quorum: yes, stream: no, value: integer(0, maxMillis) },
    "x-expires": { classic: yes, quorum: yes, stream: no, value: integer(1, maxMillis) },
    "x-dead-letter-exchange": { classic: yes, quorum: yes, stream: no, value: shortText },
    "x-dead-letter-routing-key": {
      classic: yes,
      quorum: yes,
      stream: no,
      value: (value, declared) =>
        declared["x-dead-letter-exchange"] === undefined ? "requires x-dead-letter-exchange" : shortText(value)
    },
    "x-dead-letter-strategy": { classic: no, quorum: yes, stream: no, value: oneOf("at-most-once", "at-least-once") },
    "x-max-length": { classic: yes, quorum: yes, stream: no, value: integer(0) },
    "x-max-length-bytes": { classic: yes, quorum: yes, stream: yes, value: integer(0) },
    "x-max-in-memory-length": { classic: no, quorum: sinceRelease(400, ignored, yes), stream: no, value: integer(0) },
    "x-max-in-memory-bytes": { classic: no, quorum: sinceRelease(400, ignored, yes), stream: no, value: integer(0) },
    "x-overflow": {
      classic: yes,
      quorum: (_, value) => (value === "reject-publish-dlx" ? "inert" : "accepted"),
      stream: no,
      value: oneOf("drop-head", "reject-publish", "reject-publish-dlx")
    },
    "x-max-priority": {
      classic: yes,
      quorum: no,
      stream: no,
      value: integer(1, 255),
      instead: "quorum queues have priorities from 4.0 on without an argument"
    },
    "x-single-active-consumer": { classic: yes, quorum: yes, stream: no, value: boolean },
    "x-consumer-timeout": {
      classic: sinceRelease(403, ignored, sinceRelease(312, yes, ignored)),
      quorum: sinceRelease(312, yes, ignored),
      stream: ignored,
      value: integer(1, maxMillis)
    },
    "x-delivery-limit": { classic: no, quorum: yes, stream: no, value: integer(-1) },
    "x-queue-leader-locator": {
      classic: sinceRelease(400, yes, no),
      quorum: yes,
      stream: yes,
      value: oneOf("client-local", "balanced", "random", "least-leaders")
    },
    "x-queue-master-locator": {
      classic: sinceRelease(403, no, yes),
      quorum: no,
      stream: no,
      value: oneOf("min-masters", "client-local", "random"),
      instead: "use x-queue-leader-locator instead"
    },
    "x-queue-mode": {
      classic: sinceRelease(403, no, sinceRelease(312, ignored, yes)),
      quorum: no,
      stream: no,
      value: oneOf("default", "lazy"),
      instead: "classic queues are always lazy from 3.12 on"
    },
    "x-queue-version": {
      classic: sinceRelease(403, (_, value) => (value === 1 ? "refused" : "accepted"), yes),
      quorum: no,
      stream: no,
      value: integer(1, 2)
    },
    "x-quorum-initial-group-size": { classic: no, quorum: yes, stream: no, value: integer(1) },
    "x-quorum-target-group-size": {
      classic: ignored,
      quorum: sinceRelease(313, yes, ignored),
      stream: ignored,
      value: integer(1)
    },
    "x-initial-cluster-size": { classic: no, quorum: no, stream: yes, value: integer(1) },
    "x-max-age": { classic: no, quorum: no, stream: yes, value: age },
    "x-stream-max-segment-size-bytes": { classic: no, quorum: no, stream: yes, value: integer(0, 3_000_000_000) },
    "x-stream-filter-size-bytes": {
      classic: sinceRelease(313, no, ignored),
      quorum: sinceRelease(313, no, ignored),
      stream: sinceRelease(313, yes, ignored),
      value: integer(16, 255)
    },
    "x-delayed-retry-type": {
      classic: ignored,
      quorum: sinceRelease(403, yes, ignored),
      stream: ignored,
      value: oneOf("disabled", "all", "failed", "returned")
    },
    "x-delayed-retry-min": {
      classic: ignored,
      quorum: sinceRelease(403, yes, ignored),
      stream: ignored,
      value: integer(0)
    },
    "x-delayed-retry-max": {
      classic: ignored,
      quorum: sinceRelease(403, yes, ignored),
      stream: ignored,
      value: integer(0)
    }
  })
)

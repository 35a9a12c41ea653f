import type { DeadLetterSummary } from "../../status/dead-letters/DeadLetterStore.ts"
import { type Attempt, type Attempts, failedAttempt } from "./Attempts.ts"
import type { TaskNodes } from "./DeliveryNodes.ts"
import { instantOf, type RecordedObservation } from "./Evidence.ts"
import { compare, type GraphBuilder, type Instant } from "./GraphBuilder.ts"

export const addNodes = (
  builder: GraphBuilder,
  { attempts, node, taskId }: TaskNodes,
  observations: ReadonlyArray<RecordedObservation>,
  records: ReadonlyArray<DeadLetterSummary>
): void => {
  const numbers = { observed: 0, recorded: 0 }
  const taken = new Set<Attempt>()
  for (const { observed, record, ...when } of mergeEvidence(observations, records)) {
    const annotations = { ...(observed && observedAnnotations(observed)), ...record }
    const { queue_name: queue, reason, retry_attempt: attempt, source_queue_name: source } = annotations
    const id =
      observed === undefined ? `dlq:${taskId}:record:${++numbers.recorded}` : `dlq:${taskId}:${++numbers.observed}`
    const label = reason || queue || "dlq"
    const dead = builder.addNode(id, "dlq_record", taskId, when, { label, annotations })
    const from = failedAttempt(attempts, source ?? null, attempt ?? null, when.at)
    builder.addEdge(from?.id ?? node, "dead_lettered_to", dead, when)
    const to = record && attemptOfReplay(attempts, record, from, taken)
    if (to === undefined) continue
    taken.add(to)
    builder.addEdge(dead, "received_by", to.id, to)
  }
}

/**
 * Returns the first attempt after a replay: the first delivery of the same message on the target queue. The attempt may
 * seem earlier than the replay, because the clocks of two processes differ.
 */
const attemptOfReplay = (
  attempts: Attempts,
  { replay_target_queue_name: queue, replayed_at, state }: DeadLetterSummary,
  from: Attempt | undefined,
  taken: ReadonlySet<Attempt>
): Attempt | undefined => {
  const { at, timestamp } = instantOf(replayed_at)
  if (state !== "replayed" || queue === null || timestamp === null) return undefined
  return attempts
    .onQueue(queue)
    .all.find(
      (attempt) =>
        (attempt.retryAttempt ?? 0) === 0 &&
        attempt.at >= at - maxPairingMicros &&
        attempt.messageId === (from?.messageId ?? attempt.messageId) &&
        attempt.position > (from?.position ?? 0) &&
        !taken.has(attempt)
    )
}

const deadLetterEvents: ReadonlySet<string> = new Set(["ConsumerDeadLetterPublished", "AggregationDeadLetterPublished"])

const observedAnnotations = (observation: RecordedObservation) => ({
  queue_name: observation.text("queue_name"),
  source_queue_name: observation.text("source_queue_name"),
  retry_attempt: observation.count("retry_attempt"),
  max_retries: observation.count("max_retries"),
  reason: observation.text("reason")
})

interface DeadLetter extends Instant {
  readonly observed?: RecordedObservation
  readonly record?: DeadLetterSummary
}

/** A worker may record a dead letter up to five seconds after observing it. This limit is one second longer. */
const maxPairingMicros = 6_000_000

/**
 * Combines the observation and the record of each dead letter. The observation and the record have no common id. They
 * are matched by queue and attempt number, and then by the smallest time difference.
 */
const mergeEvidence = (
  observations: ReadonlyArray<RecordedObservation>,
  records: ReadonlyArray<DeadLetterSummary>
): ReadonlyArray<DeadLetter> => {
  const groups = new Map<
    string,
    { readonly observed: Array<RecordedObservation>; readonly recorded: Array<RecordedDeadLetter> }
  >()
  const groupOf = (queue: string | null, attempt: number | null) => {
    const key = `${attempt} ${queue}`
    const group = groups.get(key) ?? { observed: [], recorded: [] }
    groups.set(key, group)
    return group
  }
  for (const observation of observations) {
    if (deadLetterEvents.has(observation.type))
      groupOf(observation.text("queue_name"), observation.count("retry_attempt")).observed.push(observation)
  }
  const ids = new Set<string>()
  for (const record of records) {
    if (ids.has(record.dlq_id)) continue
    ids.add(record.dlq_id)
    groupOf(record.queue_name, record.retry_attempt).recorded.push({ record, ...instantOf(record.dead_lettered_at) })
  }
  return [...groups.values()]
    .flatMap(({ observed, recorded }) => pairByTime(observed, recorded.sort(byTime)))
    .sort((one, other) => compare(one.at, other.at) || compare(identityOf(one), identityOf(other)))
}

type RecordedDeadLetter = Instant & { readonly record: DeadLetterSummary }

const byTime = (one: RecordedDeadLetter, other: RecordedDeadLetter) =>
  compare(one.at, other.at) || compare(one.record.dlq_id, other.record.dlq_id)

const identityOf = ({ observed, record }: DeadLetter): string =>
  `${record?.queue_name ?? observed?.text("queue_name")} ${record?.dlq_id ?? ""}`

const pairByTime = (
  observed: ReadonlyArray<RecordedObservation>,
  recorded: ReadonlyArray<RecordedDeadLetter>
): ReadonlyArray<DeadLetter> => {
  const found: Array<DeadLetter> = []
  let [o, r] = [0, 0]
  while (o < observed.length || r < recorded.length) {
    const [observation, record] = [observed[o], recorded[r]]
    const apart = distance(observation, record)
    const another = Math.min(distance(observation, recorded[r + 1]), distance(observed[o + 1], record))
    if (observation !== undefined && record !== undefined && apart <= maxPairingMicros && apart <= another) {
      found.push({ at: observation.at, timestamp: observation.timestamp, observed: observation, record: record.record })
      o++
      r++
      continue
    }
    if (record !== undefined && (observation === undefined || record.at <= observation.at)) {
      found.push(record)
      r++
    } else if (observation !== undefined) {
      found.push({ at: observation.at, timestamp: observation.timestamp, observed: observation })
      o++
    }
  }
  return found
}

const distance = (one: Instant | undefined, other: Instant | undefined): number => {
  if (one === undefined || other === undefined) return Number.POSITIVE_INFINITY
  return one.at === other.at ? 0 : Math.abs(one.at - other.at)
}

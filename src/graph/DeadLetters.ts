import type { DeadLetterSummary } from "../status/dead-letters/DeadLetterStore.ts"
import { type Attempt, type Attempts, failed } from "./Attempts.ts"
import { type Drawing, type Instant, order } from "./Drawing.ts"
import { instantOf, type Seen } from "./Evidence.ts"
import type { Drawn } from "./Receipts.ts"

/**
 * Draws the dead letters of a task: one node for each, whether it was observed, recorded, or both, from the attempt that
 * failed to the attempt that its last replay became, once that was seen.
 */
export const draw = (
  drawing: Drawing,
  { attempts, node, taskId }: Drawn,
  observations: ReadonlyArray<Seen>,
  records: ReadonlyArray<DeadLetterSummary>
): void => {
  const numbers = { observed: 0, recorded: 0 }
  const taken = new Set<Attempt>()
  for (const { observed, record, ...when } of merged(observations, records)) {
    const annotations = { ...(observed && observedAnnotations(observed)), ...record }
    const { queue_name: queue, reason, retry_attempt: attempt, source_queue_name: source } = annotations
    const id =
      observed === undefined ? `dlq:${taskId}:record:${++numbers.recorded}` : `dlq:${taskId}:${++numbers.observed}`
    const label = reason || queue || "dlq"
    const dead = drawing.node(id, "dlq_record", taskId, when, { label, annotations })
    const from = failed(attempts, source ?? null, attempt ?? null, when.at)
    drawing.edge(from?.id ?? node, "dead_lettered_to", dead, when)
    const to = record && replayed(attempts, record, from, taken)
    if (to === undefined) continue
    taken.add(to)
    drawing.edge(dead, "received_by", to.id, to)
  }
}

/**
 * Which attempt a replay became: the first behind the one that failed, of its message and on the queue that it was
 * published to, where attempts count from 0 again. Who replays and who receives may differ in their clocks.
 */
const replayed = (
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
        attempt.at >= at - withinMicros &&
        attempt.message === (from?.message ?? attempt.message) &&
        attempt.place > (from?.place ?? 0) &&
        !taken.has(attempt)
    )
}

const deadLettered: ReadonlySet<string> = new Set(["ConsumerDeadLetterPublished", "AggregationDeadLetterPublished"])

const observedAnnotations = (seen: Seen) => ({
  queue_name: seen.text("queue_name"),
  source_queue_name: seen.text("source_queue_name"),
  retry_attempt: seen.count("retry_attempt"),
  max_retries: seen.count("max_retries"),
  reason: seen.text("reason")
})

interface DeadLetter extends Instant {
  readonly observed?: Seen
  readonly record?: DeadLetterSummary
}

/** A worker observes a dead letter and then records it, for at most five seconds: that much lies between the two times. */
const withinMicros = 6_000_000

/**
 * What was observed and what was recorded have no id in common. They are the same dead letter where queue and attempt
 * agree, and the times are close and closer than to any other.
 */
const merged = (
  observations: ReadonlyArray<Seen>,
  records: ReadonlyArray<DeadLetterSummary>
): ReadonlyArray<DeadLetter> => {
  const groups = new Map<string, { readonly observed: Array<Seen>; readonly recorded: Array<Recorded> }>()
  const groupOf = (queue: string | null, attempt: number | null) => {
    const key = `${attempt} ${queue}`
    const group = groups.get(key) ?? { observed: [], recorded: [] }
    groups.set(key, group)
    return group
  }
  for (const seen of observations) {
    if (deadLettered.has(seen.type)) groupOf(seen.text("queue_name"), seen.count("retry_attempt")).observed.push(seen)
  }
  const ids = new Set<string>()
  for (const record of records) {
    if (ids.has(record.dlq_id)) continue
    ids.add(record.dlq_id)
    groupOf(record.queue_name, record.retry_attempt).recorded.push({ record, ...instantOf(record.dead_lettered_at) })
  }
  return [...groups.values()]
    .flatMap(({ observed, recorded }) => pairs(observed, recorded.sort(byTime)))
    .sort((one, other) => order(one.at, other.at) || order(identityOf(one), identityOf(other)))
}

type Recorded = Instant & { readonly record: DeadLetterSummary }

const byTime = (one: Recorded, other: Recorded) =>
  order(one.at, other.at) || order(one.record.dlq_id, other.record.dlq_id)

const identityOf = ({ observed, record }: DeadLetter): string =>
  `${record?.queue_name ?? observed?.text("queue_name")} ${record?.dlq_id ?? ""}`

/** Both in the order of time. */
const pairs = (observed: ReadonlyArray<Seen>, recorded: ReadonlyArray<Recorded>): ReadonlyArray<DeadLetter> => {
  const found: Array<DeadLetter> = []
  let [o, r] = [0, 0]
  while (o < observed.length || r < recorded.length) {
    const [seen, record] = [observed[o], recorded[r]]
    const apart = distance(seen, record)
    const another = Math.min(distance(seen, recorded[r + 1]), distance(observed[o + 1], record))
    if (seen !== undefined && record !== undefined && apart <= withinMicros && apart <= another) {
      found.push({ at: seen.at, timestamp: seen.timestamp, observed: seen, record: record.record })
      o++
      r++
      continue
    }
    if (record !== undefined && (seen === undefined || record.at <= seen.at)) {
      found.push(record)
      r++
    } else if (seen !== undefined) {
      found.push({ at: seen.at, timestamp: seen.timestamp, observed: seen })
      o++
    }
  }
  return found
}

const distance = (one: Instant | undefined, other: Instant | undefined): number => {
  if (one === undefined || other === undefined) return Number.POSITIVE_INFINITY
  return one.at === other.at ? 0 : Math.abs(one.at - other.at)
}

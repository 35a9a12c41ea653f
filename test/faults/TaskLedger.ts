import { Schema } from "effect"

/**
 * What a worker writes down at once of what it does, so that a kill leaves it there. `at`: milliseconds since 1970.
 *
 * - `Received`: the broker has given it a task, whose `attempt` counts from 0. `Handled`: its handler has ended well.
 * - `Sending`: a failed task is about to be published again, for that attempt or as a dead letter. `Confirmation`: what is
 *   known of that publish. A worker that dies in between leaves the one without the other.
 */
export const Entry = Schema.Union([
  Schema.TaggedStruct("Received", {
    at: Schema.Number,
    task: Schema.String,
    attempt: Schema.Int,
    redelivered: Schema.Boolean
  }),
  Schema.TaggedStruct("Handled", { task: Schema.String }),
  Schema.TaggedStruct("Sending", { task: Schema.String, attempt: Schema.Int }),
  Schema.TaggedStruct("Answered", { task: Schema.String, attempt: Schema.Int, known: Schema.Boolean })
])
export type Entry = typeof Entry.Type

/** What the publisher of a task knows. */
export interface Published {
  readonly confirmed: boolean
  /** Some publish of it had no answer: it may be there twice, or there without having been confirmed. */
  readonly doubtful: boolean
}

/** Everything that is known of a run when it is over. */
export interface Evidence {
  readonly published: ReadonlyMap<string, Published>
  /** Of all workers, each in its order. */
  readonly entries: ReadonlyArray<Entry>
  /** Tasks in the dead-letter queue, as often as they lie there. */
  readonly dead: ReadonlyArray<string>
  /** Tasks that still wait, for a worker or for their next attempt. */
  readonly queued: ReadonlyArray<string>
  /** What should become of a task whose handler runs as often as the retry policy lets it. */
  readonly endOf: (task: string) => "handled" | "dead"
  /** When the broker was started again, after it had been killed; milliseconds since 1970. */
  readonly restarts: ReadonlyArray<number>
}

export interface Verdict {
  readonly confirmed: number
  readonly unknown: number
  readonly handled: number
  readonly dead: number
  readonly queued: number
  /** Confirmed, and neither handled nor dead-lettered nor queued. There must be none. */
  readonly lost: ReadonlyArray<string>
  /** Ended as their handlers did not end them. There must be none. */
  readonly astray: ReadonlyArray<string>
  /** Deliveries of an attempt that had been delivered before, and second dead letters, where something was in doubt. */
  readonly duplicates: number
  /** Of those, attempts that were in doubt for nothing but a retry queue that let them out on both sides of a restart. */
  readonly waitedTwice: number
  /** The same where nothing was in doubt. There must be none. */
  readonly unexplained: ReadonlyArray<string>
}

/** Where a dead letter stands among the attempts: behind all of them. */
const afterAll = Number.POSITIVE_INFINITY

/**
 * From the evidence to what is to be said of it. Something may happen twice from the first attempt on that is in doubt:
 * the first where a publish of the task had no answer, any where the broker said that it had delivered it before, and
 * the next where a worker died or lost its connection while it published the retry.
 *
 * And a retry may come twice, without a mark, where the broker was killed in between: the worker's queue had it, and its
 * retry queue had not yet written down that it is gone. That is the price of at least once.
 */
export const judge = ({ dead, endOf, entries, published, queued, restarts }: Evidence): Verdict => {
  const handled = new Set<string>()
  const times = new Map<string, Map<number, Array<number>>>()
  const open = new Map<string, number>()
  const doubtfulFrom = new Map<string, number>()
  const doubt = (task: string, attempt: number) =>
    void doubtfulFrom.set(task, Math.min(attempt, doubtfulFrom.get(task) ?? afterAll))
  const isDoubtful = (task: string, attempt: number) => {
    const from = doubtfulFrom.get(task)
    return from !== undefined && from <= attempt
  }
  const count = (task: string, attempt: number, at: number) => {
    const attempts = times.get(task) ?? new Map<number, Array<number>>()
    times.set(task, attempts.set(attempt, [...(attempts.get(attempt) ?? []), at]))
  }
  const answer = (task: string, attempt: number, by: number) => {
    const key = `${task} ${attempt}`
    open.set(key, (open.get(key) ?? 0) + by)
  }

  for (const [task, { doubtful }] of published) if (doubtful) doubt(task, 0)
  for (const entry of entries) {
    switch (entry._tag) {
      case "Received":
        count(entry.task, entry.attempt, entry.at)
        if (entry.redelivered) doubt(entry.task, entry.attempt)
        break
      case "Handled":
        handled.add(entry.task)
        break
      case "Sending":
        answer(entry.task, entry.attempt, 1)
        break
      case "Answered":
        if (entry.known) answer(entry.task, entry.attempt, -1)
    }
  }
  for (const entry of entries) {
    if (entry._tag === "Sending" && open.get(`${entry.task} ${entry.attempt}`) !== 0) doubt(entry.task, entry.attempt)
  }
  for (const task of dead) count(task, afterAll, 0)

  const ended = { handled, dead: new Set(dead) }
  const waiting = new Set(queued)
  const confirmed = [...published].flatMap(([task, { confirmed }]) => (confirmed ? [task] : []))
  const duplicated = [...times].flatMap(([task, attempts]) =>
    [...attempts].flatMap(([attempt, times]) => (times.length > 1 ? [{ task, attempt, times }] : []))
  )
  const waitedTwice = duplicated.filter(
    ({ attempt, task, times }) => !isDoubtful(task, attempt) && attempt > 0 && isOnBothSides(times, restarts)
  )
  for (const { attempt, task } of waitedTwice) doubt(task, attempt)
  return {
    confirmed: confirmed.length,
    unknown: [...published.values()].filter(({ doubtful }) => doubtful).length,
    handled: ended.handled.size,
    dead: ended.dead.size,
    queued: waiting.size,
    lost: confirmed.filter((task) => !ended.handled.has(task) && !ended.dead.has(task) && !waiting.has(task)),
    astray: [
      ...[...ended.handled].filter((task) => endOf(task) !== "handled"),
      ...[...ended.dead].filter((task) => endOf(task) !== "dead")
    ],
    duplicates: duplicated
      .filter(({ attempt, task }) => isDoubtful(task, attempt))
      .reduce((sum, { times }) => sum + times.length - 1, 0),
    waitedTwice: waitedTwice.length,
    unexplained: duplicated
      .filter(({ attempt, task }) => !isDoubtful(task, attempt))
      .map(({ attempt, task }) => (attempt === afterAll ? `${task} dead-lettered twice` : `${task} attempt ${attempt}`))
  }
}

const isOnBothSides = (times: ReadonlyArray<number>, restarts: ReadonlyArray<number>): boolean =>
  restarts.some((restart) => Math.min(...times) < restart && restart < Math.max(...times))

import { Clock, Deferred, Effect, Exit, Option, Schema, type Scope } from "effect"
import * as Share from "../../services/Share.ts"
import type { KeyRecord, Stored } from "./KeyRecord.ts"

/** The database did not answer for a key that is not in memory. */
export class ControlStateUnavailable extends Schema.TaggedError<ControlStateUnavailable>()("ControlStateUnavailable", {
  cause: Schema.Defect()
}) {}

type Loaded = Option.Option<KeyRecord>
type Waiting = Deferred.Deferred<Loaded, ControlStateUnavailable>

/** How many keys are remembered; the least recently used goes first. A record is about a kilobyte. */
const capacity = 50_000
/** Wrong keys have a room of their own: a flood of them drives no right one out. */
const unknownCapacity = 10_000
/** Long enough to blunt a flood of one wrong key, short enough for a key that was created a moment ago. */
const unknownForMs = 1000
/** So many look-ups at once leave sessions for everybody else. */
const concurrentLoads = 4
/** Of what waits, so many keys are looked up by one statement: a flood of wrong keys is a few statements. */
const batchSize = 256
/** Keys that wait to be looked up; one address has its share of them. */
const lineCapacity = 8_192
/** A database that takes longer is as good as gone: the client is told so while it still listens. The line counts. */
const answeredWithinMs = 2_000

/** A key in the line. */
interface Asked {
  readonly digest: string
  readonly from: string
  readonly waiting: Waiting
  /** Until when somebody may wait, in epoch milliseconds. */
  readonly until: number
}

export interface KeyCache {
  /** At once, if it is in memory. */
  readonly known: (digest: string) => KeyRecord | undefined
  /** `from`: the address that presents the key. */
  readonly get: (digest: string, from?: string) => Effect.Effect<Loaded, ControlStateUnavailable>
  readonly forget: (id: string) => void
  readonly forgetProject: (projectId: string) => void
  readonly forgetAll: () => void
}

/**
 * A bounded map in front of a query. Written out because of one law: what was asked before a key was forgotten must not
 * be remembered after it, or a revoked key would live on. Loads run in `scope`: when the client that caused one hangs
 * up, the others still wait for its answer.
 */
export const make = (
  load: (digests: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, Stored>, unknown>,
  scope: Scope.Scope
): KeyCache => {
  const known = new Map<string, KeyRecord>()
  /** By the id of the key. After a rotation two lead to it for a while, and a third for as long as a notice takes. */
  const digests = new Map<string, ReadonlyArray<string>>()
  /** Until when, in epoch milliseconds. */
  const unknown = new Map<string, number>()
  const loading = new Map<string, Waiting>()
  let newest: string | undefined
  const line: Array<Asked> = []
  /** How many keys of each address are in the line. */
  const inLine = new Map<string, number>()
  let running = 0

  const drop = (digest: string) => {
    const record = known.get(digest)
    if (record !== undefined) {
      const others = digests.get(record.id)?.filter((other) => other !== digest) ?? []
      if (others.length === 0) digests.delete(record.id)
      else digests.set(record.id, others)
    }
    known.delete(digest)
  }

  const remember = (digest: string, record: KeyRecord) => {
    newest = digest
    known.delete(digest)
    known.set(digest, record)
    const same = digests.get(record.id)
    if (same === undefined) digests.set(record.id, [digest])
    else if (!same.includes(digest)) digests.set(record.id, [...same, digest])
    if (known.size > capacity) dropOldest(known, drop)
  }

  const rememberUnknown = (digest: string, until: number) => {
    unknown.delete(digest)
    unknown.set(digest, until)
    if (unknown.size > unknownCapacity) dropOldest(unknown, (oldest) => unknown.delete(oldest))
  }

  const settle = ({ digest, waiting }: Asked, exit: Exit.Exit<Loaded, ControlStateUnavailable>, now: number) => {
    // forgotten meanwhile: whoever asked gets the answer, nobody after them
    if (loading.get(digest) === waiting) {
      loading.delete(digest)
      if (Exit.isSuccess(exit)) {
        if (Option.isSome(exit.value)) remember(digest, exit.value.value)
        else rememberUnknown(digest, now + unknownForMs)
      }
    }
    Deferred.doneUnsafe(waiting, exit)
  }

  const outcomeOf = (exit: Exit.Exit<ReadonlyMap<string, Stored>, unknown>, digest: string) => {
    if (Exit.isFailure(exit)) return Exit.fail(new ControlStateUnavailable({ cause: exit.cause }))
    const found = exit.value.get(digest)
    return found === "unreadable"
      ? Exit.fail(new ControlStateUnavailable({ cause: "this version cannot decode the row of the key" }))
      : Exit.succeed(Option.fromUndefinedOr(found))
  }

  /** Runs in `scope`: when the client that asked hangs up, the others still wait for its answer. */
  const loadBatch = (batch: ReadonlyArray<Asked>): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      load(batch.map(({ digest }) => digest)).pipe(
        Effect.timeout(answeredWithinMs),
        Effect.onExit((exit) =>
          Effect.sync(() => {
            running -= 1
            for (const asked of batch) settle(asked, outcomeOf(exit, asked.digest), now)
          })
        ),
        Effect.ignoreCause,
        Effect.andThen(loadNext)
      )
    )

  const loadNext: Effect.Effect<void> = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    if (running >= concurrentLoads) return Effect.void
    const first = line.findIndex(({ until }) => until > now)
    for (const asked of taken(first === -1 ? line.length : first)) settle(asked, Exit.fail(late), now)
    const batch = taken(batchSize)
    if (batch.length === 0) return Effect.void
    running += 1
    return Effect.asVoid(Effect.forkIn(loadBatch(batch), scope))
  })

  const taken = (count: number): ReadonlyArray<Asked> => {
    const first = line.splice(0, count)
    for (const { from } of first) leave(from)
    return first
  }

  const leave = (from: string) => {
    const left = (inLine.get(from) ?? 0) - 1
    if (left <= 0) inLine.delete(from)
    else inLine.set(from, left)
  }

  const join = (digest: string, from: string, now: number): Effect.Effect<Loaded, ControlStateUnavailable> => {
    const ofAddress = inLine.get(from) ?? 0
    const most = Share.beside(lineCapacity, line.length - ofAddress)
    if (line.length >= lineCapacity || ofAddress >= most) return Effect.fail(lineIsFull)
    const waiting: Waiting = Deferred.makeUnsafe()
    loading.set(digest, waiting)
    line.push({ digest, from, waiting, until: now + answeredWithinMs })
    inLine.set(from, ofAddress + 1)
    return Effect.andThen(loadNext, answered(waiting))
  }

  /** Each who waits has a deadline of their own, from when they began to. */
  const answered = (waiting: Waiting): Effect.Effect<Loaded, ControlStateUnavailable> =>
    Effect.timeoutOrElse(Deferred.await(waiting), { duration: answeredWithinMs, orElse: () => Effect.fail(late) })

  const recall = (digest: string): KeyRecord | undefined => {
    const record = known.get(digest)
    // requests of one key come in runs: it is in its place already
    if (record !== undefined && digest !== newest) remember(digest, record)
    return record
  }

  const ask = (digest: string, from: string, now: number): Effect.Effect<Loaded, ControlStateUnavailable> => {
    if ((unknown.get(digest) ?? 0) > now) return Effect.succeed(Option.none())
    const waiting = loading.get(digest)
    return waiting === undefined ? join(digest, from, now) : answered(waiting)
  }

  return {
    known: recall,
    get: (digest, from = "") =>
      Effect.suspend(() => {
        const record = recall(digest)
        return record === undefined
          ? Effect.flatMap(Clock.currentTimeMillis, (now) => ask(digest, from, now))
          : Effect.succeed(Option.some(record))
      }),
    forget: (id) => {
      loading.clear()
      unknown.clear()
      for (const digest of digests.get(id) ?? []) drop(digest)
    },
    forgetProject: (projectId) => {
      loading.clear()
      for (const [digest, record] of known) {
        if (Option.contains(record.projectId, projectId)) drop(digest)
      }
    },
    forgetAll: () => {
      loading.clear()
      unknown.clear()
      known.clear()
      digests.clear()
    }
  }
}

const late = new ControlStateUnavailable({ cause: "the database did not answer for the key in time" })
const lineIsFull = new ControlStateUnavailable({ cause: "too many keys wait to be looked up" })

/** Maps keep the order of insertion. */
const dropOldest = <A>(map: ReadonlyMap<string, A>, drop: (key: string) => void): void => {
  const oldest = map.keys().next().value
  if (oldest !== undefined) drop(oldest)
}

import { Clock, Deferred, Effect, Exit, Option, Schema, type Scope } from "effect"
import * as FairShare from "../../services/FairShare.ts"
import type { KeyLookUp, KeyRecord } from "./KeyRecord.ts"

/** The database did not answer for a key that is not in memory. */
export class ControlStateUnavailable extends Schema.TaggedError<ControlStateUnavailable>()("ControlStateUnavailable", {
  cause: Schema.Defect()
}) {}

type FoundKey = Option.Option<KeyRecord>
type PendingLookUp = Deferred.Deferred<FoundKey, ControlStateUnavailable>

/** How many keys are remembered; the least recently used goes first. A record is about a kilobyte. */
const maxKeys = 50_000
/** Wrong keys have a room of their own: a flood of them drives no right one out. */
const maxUnknownKeys = 10_000
/** Long enough to blunt a flood of one wrong key, short enough for a key that was created a moment ago. */
const unknownTtlMs = 1000
/** So many look-ups at once leave sessions for everybody else. */
const maxConcurrentLoads = 4
/** Of what waits, so many keys are looked up by one statement: a flood of wrong keys is a few statements. */
const batchSize = 256
/** Keys that wait to be looked up; one address has its share of them. */
const queueCapacity = 8_192
/** A database that takes longer is as good as gone: the client is told so while it still listens. The line counts. */
const lookUpTimeoutMs = 2_000

/** A key in the line. */
interface QueuedLookUp {
  readonly digest: string
  readonly address: string
  readonly result: PendingLookUp
  /** Until when somebody may wait, in epoch milliseconds. */
  readonly deadline: number
}

export interface KeyCache {
  /** At once, if it is in memory. */
  readonly getCached: (digest: string) => KeyRecord | undefined
  /** `from`: the address that presents the key. */
  readonly get: (digest: string, address?: string) => Effect.Effect<FoundKey, ControlStateUnavailable>
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
  load: (digests: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, KeyLookUp>, unknown>,
  scope: Scope.Scope
): KeyCache => {
  const records = new Map<string, KeyRecord>()
  /** By the id of the key. After a rotation two lead to it for a while, and a third for as long as a notice takes. */
  const digestsById = new Map<string, ReadonlyArray<string>>()
  /** Until when, in epoch milliseconds. */
  const unknownUntil = new Map<string, number>()
  const loading = new Map<string, PendingLookUp>()
  let mostRecent: string | undefined
  const queue: Array<QueuedLookUp> = []
  /** How many keys of each address are in the line. */
  const queuedByAddress = new Map<string, number>()
  let runningLoads = 0

  const evict = (digest: string) => {
    const record = records.get(digest)
    if (record !== undefined) {
      const others = digestsById.get(record.id)?.filter((other) => other !== digest) ?? []
      if (others.length === 0) digestsById.delete(record.id)
      else digestsById.set(record.id, others)
    }
    records.delete(digest)
  }

  const remember = (digest: string, record: KeyRecord) => {
    mostRecent = digest
    records.delete(digest)
    records.set(digest, record)
    const same = digestsById.get(record.id)
    if (same === undefined) digestsById.set(record.id, [digest])
    else if (!same.includes(digest)) digestsById.set(record.id, [...same, digest])
    if (records.size > maxKeys) dropOldest(records, evict)
  }

  const rememberUnknown = (digest: string, until: number) => {
    unknownUntil.delete(digest)
    unknownUntil.set(digest, until)
    if (unknownUntil.size > maxUnknownKeys) dropOldest(unknownUntil, (oldest) => unknownUntil.delete(oldest))
  }

  const complete = (
    { digest, result }: QueuedLookUp,
    exit: Exit.Exit<FoundKey, ControlStateUnavailable>,
    now: number
  ) => {
    // forgotten meanwhile: whoever asked gets the answer, nobody after them
    if (loading.get(digest) === result) {
      loading.delete(digest)
      if (Exit.isSuccess(exit)) {
        if (Option.isSome(exit.value)) remember(digest, exit.value.value)
        else rememberUnknown(digest, now + unknownTtlMs)
      }
    }
    Deferred.doneUnsafe(result, exit)
  }

  const resultFor = (exit: Exit.Exit<ReadonlyMap<string, KeyLookUp>, unknown>, digest: string) => {
    if (Exit.isFailure(exit)) return Exit.fail(new ControlStateUnavailable({ cause: exit.cause }))
    const found = exit.value.get(digest)
    return found === "unreadable"
      ? Exit.fail(new ControlStateUnavailable({ cause: "this version cannot decode the row of the key" }))
      : Exit.succeed(Option.fromUndefinedOr(found))
  }

  /** Runs in `scope`: when the client that asked hangs up, the others still wait for its answer. */
  const loadBatch = (batch: ReadonlyArray<QueuedLookUp>): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      load(batch.map(({ digest }) => digest)).pipe(
        Effect.timeout(lookUpTimeoutMs),
        Effect.onExit((exit) =>
          Effect.sync(() => {
            runningLoads -= 1
            for (const asked of batch) complete(asked, resultFor(exit, asked.digest), now)
          })
        ),
        Effect.ignoreCause,
        Effect.andThen(loadNext)
      )
    )

  const loadNext: Effect.Effect<void> = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    if (runningLoads >= maxConcurrentLoads) return Effect.void
    const first = queue.findIndex(({ deadline }) => deadline > now)
    for (const asked of takeFromQueue(first === -1 ? queue.length : first)) complete(asked, Exit.fail(timedOut), now)
    const batch = takeFromQueue(batchSize)
    if (batch.length === 0) return Effect.void
    runningLoads += 1
    return Effect.asVoid(Effect.forkIn(loadBatch(batch), scope))
  })

  const takeFromQueue = (count: number): ReadonlyArray<QueuedLookUp> => {
    const first = queue.splice(0, count)
    for (const { address } of first) releaseQueueSlot(address)
    return first
  }

  const releaseQueueSlot = (from: string) => {
    const left = (queuedByAddress.get(from) ?? 0) - 1
    if (left <= 0) queuedByAddress.delete(from)
    else queuedByAddress.set(from, left)
  }

  const enqueue = (digest: string, from: string, now: number): Effect.Effect<FoundKey, ControlStateUnavailable> => {
    const ofAddress = queuedByAddress.get(from) ?? 0
    const most = FairShare.allowance(queueCapacity, queue.length - ofAddress)
    if (queue.length >= queueCapacity || ofAddress >= most) return Effect.fail(queueIsFull)
    const waiting: PendingLookUp = Deferred.makeUnsafe()
    loading.set(digest, waiting)
    queue.push({ digest, address: from, result: waiting, deadline: now + lookUpTimeoutMs })
    queuedByAddress.set(from, ofAddress + 1)
    return Effect.andThen(loadNext, awaitResult(waiting))
  }

  /** Each who waits has a deadline of their own, from when they began to. */
  const awaitResult = (waiting: PendingLookUp): Effect.Effect<FoundKey, ControlStateUnavailable> =>
    Effect.timeoutOrElse(Deferred.await(waiting), { duration: lookUpTimeoutMs, orElse: () => Effect.fail(timedOut) })

  const cachedRecord = (digest: string): KeyRecord | undefined => {
    const record = records.get(digest)
    // requests of one key come in runs: it is in its place already
    if (record !== undefined && digest !== mostRecent) remember(digest, record)
    return record
  }

  const lookUp = (digest: string, from: string, now: number): Effect.Effect<FoundKey, ControlStateUnavailable> => {
    if ((unknownUntil.get(digest) ?? 0) > now) return Effect.succeed(Option.none())
    const waiting = loading.get(digest)
    return waiting === undefined ? enqueue(digest, from, now) : awaitResult(waiting)
  }

  return {
    getCached: cachedRecord,
    get: (digest, from = "") =>
      Effect.suspend(() => {
        const record = cachedRecord(digest)
        return record === undefined
          ? Effect.flatMap(Clock.currentTimeMillis, (now) => lookUp(digest, from, now))
          : Effect.succeed(Option.some(record))
      }),
    forget: (id) => {
      loading.clear()
      unknownUntil.clear()
      for (const digest of digestsById.get(id) ?? []) evict(digest)
    },
    forgetProject: (projectId) => {
      loading.clear()
      for (const [digest, record] of records) {
        if (Option.contains(record.projectId, projectId)) evict(digest)
      }
    },
    forgetAll: () => {
      loading.clear()
      unknownUntil.clear()
      records.clear()
      digestsById.clear()
    }
  }
}

const timedOut = new ControlStateUnavailable({ cause: "the database did not answer for the key in time" })
const queueIsFull = new ControlStateUnavailable({ cause: "too many keys wait to be looked up" })

/** Maps keep the order of insertion. */
const dropOldest = <A>(map: ReadonlyMap<string, A>, drop: (key: string) => void): void => {
  const oldest = map.keys().next().value
  if (oldest !== undefined) drop(oldest)
}

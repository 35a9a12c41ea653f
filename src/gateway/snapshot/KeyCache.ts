import { Clock, Deferred, Effect, Exit, Option, Schema, type Scope } from "effect"
import { CachedKeys } from "./CachedKeys.ts"
import type { KeyLookUp, KeyRecord } from "./KeyRecord.ts"
import { LookUpQueue, type QueuedLookUp } from "./LookUpQueue.ts"

export class ControlStateUnavailable extends Schema.TaggedError<ControlStateUnavailable>()("ControlStateUnavailable", {
  cause: Schema.Defect()
}) {}

type FoundKey = Option.Option<KeyRecord>
type PendingLookUp = Deferred.Deferred<FoundKey, ControlStateUnavailable>

/** This time absorbs a flood of one wrong key. A key created a moment ago works after this time at the latest. */
const unknownTtlMs = 1000
/** The limit leaves database sessions free for other work. */
const maxConcurrentLoads = 4
/** The maximum number of keys in one SQL statement. A flood of wrong keys then needs few statements. */
const batchSize = 256
const queueCapacity = 8_192
/** Includes the time in the queue. The timeout is short enough that clients still wait and receive the error. */
const lookUpTimeoutMs = 2_000

interface QueuedKey extends QueuedLookUp {
  readonly digest: string
  readonly result: PendingLookUp
}

interface KeyCache {
  readonly getCached: (digest: string) => KeyRecord | undefined
  readonly get: (digest: string, address?: string) => Effect.Effect<FoundKey, ControlStateUnavailable>
  readonly forget: (id: string) => void
  readonly forgetProject: (projectId: string) => void
  readonly forgetAll: () => void
}

/**
 * A bounded cache of keys. The result of a query that began before `forget` is never cached afterwards. Otherwise a
 * revoked key would stay valid. Queries run in `scope`, because other clients may still wait for the key when the first
 * client disconnects.
 */
export const make = (
  load: (digests: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, KeyLookUp>, unknown>,
  scope: Scope.Scope
): KeyCache => {
  const keys = new CachedKeys()
  const loading = new Map<string, PendingLookUp>()
  const queue = new LookUpQueue<QueuedKey>(queueCapacity)
  let runningLoads = 0

  const complete = ({ digest, result }: QueuedKey, exit: Exit.Exit<FoundKey, ControlStateUnavailable>, now: number) => {
    // If `forget` was called during the load, the waiting requests get the result, but it is not cached.
    if (loading.get(digest) === result) {
      loading.delete(digest)
      if (Exit.isSuccess(exit)) {
        if (Option.isSome(exit.value)) keys.add(digest, exit.value.value)
        else keys.addUnknown(digest, now + unknownTtlMs)
      }
    }
    Deferred.doneUnsafe(result, exit)
  }

  const loadBatch = (batch: ReadonlyArray<QueuedKey>): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      load(batch.map(({ digest }) => digest)).pipe(
        Effect.timeout(lookUpTimeoutMs),
        Effect.onExit((exit) =>
          Effect.sync(() => {
            runningLoads -= 1
            for (const lookUp of batch) complete(lookUp, resultFor(exit, lookUp.digest), now)
          })
        ),
        Effect.ignoreCause,
        Effect.andThen(loadNext)
      )
    )

  const loadNext: Effect.Effect<void> = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    if (runningLoads >= maxConcurrentLoads) return Effect.void
    for (const expired of queue.takeExpired(now)) complete(expired, Exit.fail(timedOut), now)
    const batch = queue.take(batchSize)
    if (batch.length === 0) return Effect.void
    runningLoads += 1
    return Effect.asVoid(Effect.forkIn(loadBatch(batch), scope))
  })

  const enqueue = (digest: string, address: string, now: number): Effect.Effect<FoundKey, ControlStateUnavailable> => {
    if (!queue.hasRoomFor(address)) return Effect.fail(queueIsFull)
    const pending: PendingLookUp = Deferred.makeUnsafe()
    loading.set(digest, pending)
    queue.add({ digest, address, result: pending, deadline: now + lookUpTimeoutMs })
    return Effect.andThen(loadNext, awaitResult(pending))
  }

  const awaitResult = (pending: PendingLookUp): Effect.Effect<FoundKey, ControlStateUnavailable> =>
    Effect.timeoutOrElse(Deferred.await(pending), { duration: lookUpTimeoutMs, orElse: () => Effect.fail(timedOut) })

  const lookUp = (digest: string, address: string, now: number): Effect.Effect<FoundKey, ControlStateUnavailable> => {
    if (keys.isUnknown(digest, now)) return Effect.succeed(Option.none())
    const pending = loading.get(digest)
    return pending === undefined ? enqueue(digest, address, now) : awaitResult(pending)
  }

  return {
    getCached: (digest) => keys.find(digest),
    get: (digest, address = "") =>
      Effect.suspend(() => {
        const record = keys.find(digest)
        return record === undefined
          ? Effect.flatMap(Clock.currentTimeMillis, (now) => lookUp(digest, address, now))
          : Effect.succeed(Option.some(record))
      }),
    forget: (id) => {
      loading.clear()
      keys.forget(id)
    },
    forgetProject: (projectId) => {
      loading.clear()
      keys.forgetProject(projectId)
    },
    forgetAll: () => {
      loading.clear()
      keys.forgetAll()
    }
  }
}

const resultFor = (exit: Exit.Exit<ReadonlyMap<string, KeyLookUp>, unknown>, digest: string) => {
  if (Exit.isFailure(exit)) return Exit.fail(new ControlStateUnavailable({ cause: exit.cause }))
  const found = exit.value.get(digest)
  return found === "unreadable"
    ? Exit.fail(new ControlStateUnavailable({ cause: "this version cannot decode the row of the key" }))
    : Exit.succeed(Option.fromUndefinedOr(found))
}

const timedOut = new ControlStateUnavailable({ cause: "the database did not return the key in time" })
const queueIsFull = new ControlStateUnavailable({ cause: "the queue of key lookups is full" })

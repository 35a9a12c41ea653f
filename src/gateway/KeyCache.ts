import { Clock, Deferred, Effect, Exit, Option, Schema, type Scope, Semaphore } from "effect"
import type { KeyRecord } from "./KeyRecord.ts"

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

export interface KeyCache {
  /** At once, if it is in memory. */
  readonly known: (digest: string) => KeyRecord | undefined
  readonly get: (digest: string) => Effect.Effect<Loaded, ControlStateUnavailable>
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
  load: (digest: string) => Effect.Effect<Loaded, ControlStateUnavailable>,
  scope: Scope.Scope
): KeyCache => {
  const known = new Map<string, KeyRecord>()
  /** By the id of the key. After a rotation two lead to it for a while, and a third for as long as a notice takes. */
  const digests = new Map<string, ReadonlyArray<string>>()
  /** Until when, in epoch milliseconds. */
  const unknown = new Map<string, number>()
  const loading = new Map<string, Waiting>()
  let newest: string | undefined
  const places = Semaphore.makeUnsafe(concurrentLoads)

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

  const loadOnce = (digest: string, now: number): Effect.Effect<Loaded, ControlStateUnavailable> => {
    const waiting: Waiting = Deferred.makeUnsafe()
    loading.set(digest, waiting)
    const settle = (exit: Exit.Exit<Loaded, ControlStateUnavailable>) => {
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
    return Semaphore.withPermits(
      places,
      1
    )(load(digest)).pipe(
      Effect.onExit((exit) => Effect.sync(() => settle(exit))),
      Effect.ignore,
      Effect.forkIn(scope),
      Effect.andThen(Deferred.await(waiting))
    )
  }

  const recall = (digest: string): KeyRecord | undefined => {
    const record = known.get(digest)
    // requests of one key come in runs: it is in its place already
    if (record !== undefined && digest !== newest) remember(digest, record)
    return record
  }

  const ask = (digest: string, now: number): Effect.Effect<Loaded, ControlStateUnavailable> => {
    if ((unknown.get(digest) ?? 0) > now) return Effect.succeed(Option.none())
    const waiting = loading.get(digest)
    return waiting === undefined ? loadOnce(digest, now) : Deferred.await(waiting)
  }

  return {
    known: recall,
    get: (digest) =>
      Effect.suspend(() => {
        const record = recall(digest)
        return record === undefined
          ? Effect.flatMap(Clock.currentTimeMillis, (now) => ask(digest, now))
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

/** Maps keep the order of insertion. */
const dropOldest = <A>(map: ReadonlyMap<string, A>, drop: (key: string) => void): void => {
  const oldest = map.keys().next().value
  if (oldest !== undefined) drop(oldest)
}

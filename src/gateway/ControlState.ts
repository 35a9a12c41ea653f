import { Clock, Context, Deferred, Effect, Exit, Layer, Option, Schedule, Schema, type Scope, Stream } from "effect"
import { Database } from "../services/Database.ts"
import * as KeyRecord from "./KeyRecord.ts"
import { type Change, channel, decode } from "./model/Changes.ts"
import type { Vault } from "./model/Vault.ts"
import * as Snapshot from "./Snapshot.ts"

/** The database did not answer for a key that is not in memory. */
export class ControlStateUnavailable extends Schema.TaggedError<ControlStateUnavailable>()("ControlStateUnavailable", {
  cause: Schema.Defect()
}) {}

/**
 * What operators decided, in memory. The request path reads it without waiting for the database; a change is here as
 * soon as its notice is (milliseconds), and within a second while notices cannot be heard. While the database is gone,
 * what is known stays in force.
 */
export class ControlState extends Context.Service<
  ControlState,
  {
    readonly snapshot: () => Snapshot.Snapshot
    /** The key whose SHA-256 is `digest` (hex). Known keys are answered at once, unknown ones remembered for a second. */
    readonly key: (digest: string) => Effect.Effect<Option.Option<KeyRecord.KeyRecord>, ControlStateUnavailable>
  }
>()("svc/gateway/ControlState") {
  static readonly layer = Layer.effect(
    ControlState,
    Effect.gen(function* () {
      const context = yield* Effect.context<Database | Vault>()
      const database = yield* Database
      let snapshot = yield* Snapshot.load
      const keys = makeKeyCache(
        (digest) =>
          KeyRecord.load(digest).pipe(
            Effect.timeout(lookUpWithin),
            Effect.mapError((cause) => new ControlStateUnavailable({ cause })),
            Effect.provide(context)
          ),
        yield* Effect.scope
      )

      const reload = Effect.gen(function* () {
        snapshot = yield* Snapshot.load
        keys.forgetAll()
      })

      const apply = (change: Change) => {
        switch (change._tag) {
          case "Configuration":
            return Effect.map(Snapshot.load, (loaded) => {
              snapshot = loaded
            })
          case "Key":
            return Effect.sync(() => keys.forget(change.id))
          case "Project":
            return Effect.sync(() => keys.forgetProject(change.id))
        }
      }

      // "follow, then load": what commits in between is in the load, and its notice only repeats it
      const follow = Effect.gen(function* () {
        const notices = yield* database.changes(channel)
        yield* reload
        yield* Stream.runForEach(notices, (notice) => Effect.flatMap(decode(notice), apply))
      }).pipe(Effect.scoped)

      const reloadIfChanged = Effect.gen(function* () {
        if ((yield* Snapshot.readEpoch) !== snapshot.epoch) yield* reload
      })

      yield* follow.pipe(
        Effect.tapError((cause) =>
          Effect.logWarning("change notices are interrupted; polling until they return", { cause })
        ),
        Effect.andThen(Effect.fail("ended" as const)),
        Effect.tapError(() => Effect.ignore(reloadIfChanged)),
        Effect.retry(Schedule.spaced("1 second")),
        Effect.forkScoped
      )

      return ControlState.of({ snapshot: () => snapshot, key: keys.get })
    })
  )
}

/** A database that takes longer is as good as gone: the client is told so while it still listens. */
const lookUpWithin = "2 seconds"
/** How many keys are remembered; the least recently used goes first. A record is about a kilobyte. */
const capacity = 50_000
/** Long enough to blunt a flood of one wrong key, short enough for a key that was created a moment ago. */
const unknownForMs = 1000

type Loaded = Option.Option<KeyRecord.KeyRecord>
type Waiting = Deferred.Deferred<Loaded, ControlStateUnavailable>

interface Known {
  readonly loaded: Loaded
  /** Epoch milliseconds. */
  readonly until: number
}

/**
 * A bounded map in front of a query. Written out because of one law: what was asked before a key was forgotten must not
 * be remembered after it, or a revoked key would live on. Loads run in `scope`: when the client that caused one hangs
 * up, the others still wait for its answer.
 */
const makeKeyCache = (load: (digest: string) => Effect.Effect<Loaded, ControlStateUnavailable>, scope: Scope.Scope) => {
  const known = new Map<string, Known>()
  const loading = new Map<string, Waiting>()
  const digests = new Map<string, string>()

  const drop = (digest: string) => {
    const entry = known.get(digest)
    if (entry !== undefined && Option.isSome(entry.loaded)) digests.delete(entry.loaded.value.id)
    known.delete(digest)
  }

  const remember = (digest: string, entry: Known) => {
    known.delete(digest)
    known.set(digest, entry)
    if (Option.isSome(entry.loaded)) digests.set(entry.loaded.value.id, digest)
    if (known.size <= capacity) return
    const oldest = known.keys().next().value
    if (oldest !== undefined) drop(oldest)
  }

  const loadOnce = (digest: string, now: number): Effect.Effect<Loaded, ControlStateUnavailable> => {
    const waiting: Waiting = Deferred.makeUnsafe()
    loading.set(digest, waiting)
    const settle = (exit: Exit.Exit<Loaded, ControlStateUnavailable>) => {
      // forgotten meanwhile: whoever asked gets the answer, nobody after them
      if (loading.get(digest) === waiting) {
        loading.delete(digest)
        if (Exit.isSuccess(exit)) {
          const until = Option.isSome(exit.value) ? Number.POSITIVE_INFINITY : now + unknownForMs
          remember(digest, { loaded: exit.value, until })
        }
      }
      Deferred.doneUnsafe(waiting, exit)
    }
    return load(digest).pipe(
      Effect.onExit((exit) => Effect.sync(() => settle(exit))),
      Effect.ignore,
      Effect.forkIn(scope),
      Effect.andThen(Deferred.await(waiting))
    )
  }

  return {
    get: (digest: string): Effect.Effect<Loaded, ControlStateUnavailable> =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const entry = known.get(digest)
        if (entry !== undefined && entry.until > now) {
          remember(digest, entry)
          return Effect.succeed(entry.loaded)
        }
        const waiting = loading.get(digest)
        return waiting === undefined ? loadOnce(digest, now) : Deferred.await(waiting)
      }),
    forget: (id: string) => {
      loading.clear()
      const digest = digests.get(id)
      if (digest !== undefined) drop(digest)
    },
    forgetProject: (projectId: string) => {
      loading.clear()
      for (const [digest, { loaded }] of known) {
        if (Option.exists(loaded, (record) => Option.contains(record.projectId, projectId))) drop(digest)
      }
    },
    forgetAll: () => {
      loading.clear()
      known.clear()
      digests.clear()
    }
  }
}

import { Clock, Context, Deferred, Effect, Exit, Layer, Option, Schedule, Schema, Stream } from "effect"
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
      let snapshot = yield* Effect.orDie(Snapshot.load)
      const keys = makeKeyCache((digest) =>
        KeyRecord.load(digest).pipe(
          Effect.mapError((cause) => new ControlStateUnavailable({ cause })),
          Effect.provide(context)
        )
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

/** How many keys are remembered; the least recently used goes first. A record is about a kilobyte. */
const capacity = 50_000
/** Long enough to blunt a flood of one wrong key, short enough for a key that was created a moment ago. */
const unknownForMs = 1000

type Loaded = Option.Option<KeyRecord.KeyRecord>
type Entry =
  | { readonly _tag: "Known"; readonly loaded: Loaded; readonly until: number }
  | { readonly _tag: "Loading"; readonly waiting: Deferred.Deferred<Loaded, ControlStateUnavailable> }

/**
 * A bounded map in front of a query. Written out because of one law: what was asked before a key was forgotten must not
 * be remembered after it, or a revoked key would live on.
 */
const makeKeyCache = (load: (digest: string) => Effect.Effect<Loaded, ControlStateUnavailable>) => {
  const entries = new Map<string, Entry>()
  const digests = new Map<string, string>()

  const drop = (digest: string) => {
    const entry = entries.get(digest)
    if (entry?._tag === "Known" && Option.isSome(entry.loaded)) digests.delete(entry.loaded.value.id)
    entries.delete(digest)
  }

  const remember = (digest: string, entry: Entry) => {
    entries.delete(digest)
    entries.set(digest, entry)
    if (entry._tag === "Known" && Option.isSome(entry.loaded)) digests.set(entry.loaded.value.id, digest)
    if (entries.size > capacity) {
      const oldest = entries.keys().next().value
      if (oldest !== undefined) drop(oldest)
    }
  }

  const loadInto = (digest: string): Effect.Effect<Loaded, ControlStateUnavailable> =>
    Effect.suspend(() => {
      const waiting = Deferred.makeUnsafe<Loaded, ControlStateUnavailable>()
      const entry: Entry = { _tag: "Loading", waiting }
      remember(digest, entry)
      // detached from the asker: when its client hangs up, the others still wait for the answer
      return Effect.flatMap(Clock.currentTimeMillis, (now) =>
        load(digest).pipe(
          Effect.onExit((exit) =>
            Effect.sync(() => {
              const stillAsked = entries.get(digest) === entry
              if (stillAsked && Exit.isSuccess(exit)) {
                const until = Option.isSome(exit.value) ? Number.POSITIVE_INFINITY : now + unknownForMs
                remember(digest, { _tag: "Known", loaded: exit.value, until })
              } else if (stillAsked) {
                entries.delete(digest)
              }
              Deferred.doneUnsafe(waiting, exit)
            })
          ),
          Effect.ignore,
          Effect.forkDetach,
          Effect.andThen(Deferred.await(waiting))
        )
      )
    })

  return {
    get: (digest: string): Effect.Effect<Loaded, ControlStateUnavailable> =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const entry = entries.get(digest)
        if (entry?._tag === "Loading") return Deferred.await(entry.waiting)
        if (entry === undefined || entry.until <= now) return loadInto(digest)
        remember(digest, entry)
        return Effect.succeed(entry.loaded)
      }),
    /** A load under way is cut off from the map: its asker gets an answer, nobody after it does. */
    forget: (id: string) => {
      const digest = digests.get(id)
      if (digest !== undefined) drop(digest)
      forgetLoading()
    },
    forgetProject: (projectId: string) => {
      for (const [digest, entry] of entries) {
        if (
          entry._tag === "Known" &&
          Option.exists(entry.loaded, (record) => Option.contains(record.projectId, projectId))
        ) {
          drop(digest)
        }
      }
      forgetLoading()
    },
    forgetAll: () => {
      entries.clear()
      digests.clear()
    }
  }

  function forgetLoading() {
    for (const [digest, entry] of entries) if (entry._tag === "Loading") entries.delete(digest)
  }
}

import { Context, Effect, Layer, type Option, Schedule, Stream } from "effect"
import { Database } from "../services/Database.ts"
import * as KeyCache from "./KeyCache.ts"
import * as KeyRecord from "./KeyRecord.ts"
import { type Change, channel, decode } from "./model/Changes.ts"
import type { Vault } from "./model/Vault.ts"
import * as Snapshot from "./Snapshot.ts"

/**
 * What operators decided, in memory. The request path reads it without waiting for the database; a change is here as
 * soon as its notice is (milliseconds), and within two seconds where notices cannot be heard. While the database is
 * gone, what is known stays in force.
 */
export class ControlState extends Context.Service<
  ControlState,
  {
    readonly snapshot: () => Snapshot.Snapshot
    /** The key whose SHA-256 is `digest` (hex), at once, if it is in memory. */
    readonly knownKey: (digest: string) => KeyRecord.KeyRecord | undefined
    /** The key whose SHA-256 is `digest` (hex). Known keys are answered at once, unknown ones remembered for a second. */
    readonly key: (
      digest: string
    ) => Effect.Effect<Option.Option<KeyRecord.KeyRecord>, KeyCache.ControlStateUnavailable>
  }
>()("svc/gateway/ControlState") {
  static readonly layer = Layer.effect(
    ControlState,
    Effect.gen(function* () {
      const context = yield* Effect.context<Database | Vault>()
      const database = yield* Database
      let snapshot = yield* Snapshot.load
      /** The epoch up to which every change is known here. */
      let epoch = snapshot.epoch
      const keys = KeyCache.make(
        (digest) =>
          KeyRecord.load(digest).pipe(
            Effect.timeout(lookUpWithin),
            Effect.mapError((cause) => new KeyCache.ControlStateUnavailable({ cause })),
            Effect.provide(context)
          ),
        yield* Effect.scope
      )

      const reload = Effect.gen(function* () {
        const loaded = yield* Snapshot.load
        snapshot = loaded
        epoch = Math.max(epoch, loaded.epoch)
        keys.forgetAll()
      })

      const apply = (change: Change): Effect.Effect<void, Effect.Error<typeof Snapshot.load>, Database | Vault> => {
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
        yield* Stream.runForEach(notices, (text) =>
          Effect.gen(function* () {
            const notice = yield* decode(text)
            yield* apply(notice.change)
            epoch = Math.max(epoch, notice.epoch)
          })
        )
      }).pipe(Effect.scoped)

      // A session that hears nothing any more looks like one to which nothing is said. Two looks at an epoch that is
      // ahead, a second apart, tell them from a notice that is on its way.
      const overtaken = Effect.gen(function* () {
        const before = epoch
        if ((yield* Snapshot.readEpoch) <= before) return
        yield* Effect.sleep("1 second")
        if (epoch === before) yield* reload
      })

      yield* follow.pipe(
        Effect.tapError((cause) =>
          Effect.logWarning("change notices are interrupted; polling until they return", { cause })
        ),
        Effect.andThen(Effect.fail("ended" as const)),
        Effect.retry(Schedule.spaced("1 second")),
        Effect.forkScoped
      )
      yield* Effect.forkScoped(Effect.repeat(Effect.ignore(overtaken), Schedule.spaced("1 second")))

      return ControlState.of({ snapshot: () => snapshot, knownKey: keys.known, key: keys.get })
    })
  )
}

/** A database that takes longer is as good as gone: the client is told so while it still listens. */
const lookUpWithin = "2 seconds"

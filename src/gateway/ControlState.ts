import { Context, Effect, Layer, Option, Schedule, Semaphore, Stream } from "effect"
import { Database } from "../services/Database.ts"
import * as EffectivePolicies from "./EffectivePolicies.ts"
import * as KeyCache from "./KeyCache.ts"
import * as KeyRecord from "./KeyRecord.ts"
import type { Meter } from "./Meters.ts"
import type { UsageRoute } from "./model/CanonicalRoute.ts"
import { type Change, channel, decode, readEpoch } from "./model/Changes.ts"
import type { EffectivePolicy } from "./model/EffectivePolicy.ts"
import { Followed } from "./model/Followed.ts"
import { type Counted, counted } from "./model/PolicyLayer.ts"
import type { Vault } from "./model/Vault.ts"
import * as Snapshot from "./Snapshot.ts"
import * as UnusedKeys from "./UnusedKeys.ts"

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
    /**
     * The key whose SHA-256 is `digest` (hex). Known keys are answered at once, unknown ones remembered for a second.
     */
    readonly key: (
      digest: string
    ) => Effect.Effect<Option.Option<KeyRecord.KeyRecord>, KeyCache.ControlStateUnavailable>
    /**
     * What the key's requests to `route` are decided by: the layers that are about them, and the key's own policy. The
     * same object for as long as none of it changes. Before the body is read `models` is empty.
     */
    readonly policyOf: (key: KeyRecord.KeyRecord, route: UsageRoute, models: ReadonlyArray<string>) => EffectivePolicy
    /** Of the key's requests, those that a limit of this name counts. */
    readonly counted: (key: KeyRecord.KeyRecord, field: Meter["field"]) => Counted
    /**
     * The key as it is now, disabled if it has not been used for `days`: what is in memory does not know of uses
     * elsewhere. `requestId` is of the request that wants to use it.
     */
    readonly retired: (
      digest: string,
      key: KeyRecord.KeyRecord,
      days: number,
      requestId: string
    ) => Effect.Effect<Option.Option<KeyRecord.KeyRecord>, KeyCache.ControlStateUnavailable>
  }
>()("svc/gateway/ControlState") {
  static readonly layer = Layer.effect(
    ControlState,
    Effect.gen(function* () {
      const context = yield* Effect.context<Database | Vault>()
      const database = yield* Database
      let snapshot = yield* Snapshot.load
      const followed = yield* Effect.serviceOption(Followed)
      /** The epoch up to which every change is known here. */
      let epoch = 0
      const reached = (known: number) => {
        epoch = Math.max(epoch, known)
        if (Option.isSome(followed)) followed.value.report(epoch)
      }
      reached(snapshot.epoch)
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
        keys.forgetAll()
        reached(loaded.epoch)
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
            reached(notice.epoch)
          })
        )
      }).pipe(Effect.scoped)

      // A session that hears nothing any more looks like one to which nothing is said. Two looks at an epoch that is
      // ahead, a second apart, tell them from a notice that is on its way.
      const overtaken = Effect.gen(function* () {
        const before = epoch
        if ((yield* readEpoch) <= before) return
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

      const policies = EffectivePolicies.remembering()
      /** The first of many requests of an unused key decides for all of them. */
      const oneAtATime = Semaphore.makeUnsafe(1)

      return ControlState.of({
        snapshot: () => snapshot,
        knownKey: keys.known,
        key: keys.get,
        policyOf: (key, route, models) => policies(snapshot.layers, key, route, models),
        counted: (key, field) =>
          counted(
            snapshot.layers,
            { projectId: Option.getOrUndefined(key.projectId), teamId: Option.getOrUndefined(key.teamId) },
            key.policy,
            (policy) => policy[field]._tag === "Limited"
          ),
        retired: (digest, key, days, requestId) =>
          Effect.suspend(() =>
            keys.known(digest) === key
              ? UnusedKeys.retire(key.id, days, requestId).pipe(
                  Effect.timeout(lookUpWithin),
                  Effect.mapError((cause) => new KeyCache.ControlStateUnavailable({ cause })),
                  Effect.tap(() => Effect.sync(() => keys.forget(key.id)))
                )
              : Effect.void
          ).pipe(Semaphore.withPermits(oneAtATime, 1), Effect.andThen(keys.get(digest)), Effect.provide(context))
      })
    })
  )
}

/** A database that takes longer is as good as gone: the client is told so while it still listens. */
const lookUpWithin = "2 seconds"

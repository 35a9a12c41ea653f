import { Context, Duration, Effect, Layer, Option, Schedule, Semaphore, Stream } from "effect"
import { SqlError } from "effect/sql"
import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import type { PolicyRoute } from "../../policy/routes/CanonicalRoute.ts"
import { AppliedEpoch } from "../../process/AppliedEpoch.ts"
import { Conditions } from "../../process/Conditions.ts"
import { Database } from "../../services/Database.ts"
import { isTransient } from "../../services/SqlState.ts"
import { type ChangeNotice, channel, decodeEpoch, decodeNotice, readEpoch } from "../../state/Changes.ts"
import * as UnusedKeys from "../../state/UnusedKeys.ts"
import type { Vault } from "../../state/Vault.ts"
import * as ConfigurationLoader from "./ConfigurationLoader.ts"
import * as EffectivePolicies from "./EffectivePolicies.ts"
import * as KeyCache from "./KeyCache.ts"
import * as KeyRecord from "./KeyRecord.ts"
import * as LimitScopes from "./LimitScopes.ts"
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
    /** Whether what operators decided is in force here, all of it. */
    readonly check: () => ConfigurationLoader.ConfigurationCheck
    /** The key whose SHA-256 is `digest` (hex), at once, if it is in memory. */
    readonly cachedKey: (digest: string) => KeyRecord.KeyRecord | undefined
    /**
     * The key whose SHA-256 is `digest` (hex). Known keys are answered at once, unknown ones remembered for a second.
     * `from`: the address that presents it.
     */
    readonly findKey: (
      digest: string,
      address?: string
    ) => Effect.Effect<Option.Option<KeyRecord.KeyRecord>, KeyCache.ControlStateUnavailable>
    /**
     * What the key's requests to `route` are decided by: the layers that are about them, and the key's own policy. The
     * same object for as long as none of it changes. Before the body is read `models` is empty.
     */
    readonly policyOf: (key: KeyRecord.KeyRecord, route: PolicyRoute, models: ReadonlyArray<string>) => EffectivePolicy
    /** The scopes that a request of the key under this policy is counted in. */
    readonly limitScopes: (
      key: KeyRecord.KeyRecord,
      effective: EffectivePolicy
    ) => ReadonlyArray<LimitScopes.LimitScope>
    /**
     * The key as it is now, disabled if it has not been used for `days`: what is in memory does not know of uses
     * elsewhere. `requestId` is of the request that wants to use it.
     */
    readonly retireUnusedKey: (
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
      const first = yield* loadFirstSnapshot
      const appliedEpoch = yield* Effect.serviceOption(AppliedEpoch)
      /** Every change up to this epoch was heard of: no key that is in memory is older. */
      let latestEpoch = first.epoch
      const report = (epoch: number) => {
        if (Option.isSome(appliedEpoch)) appliedEpoch.value.report(epoch)
      }
      report(latestEpoch)
      const configurationLoader = yield* ConfigurationLoader.make(first, (epoch) =>
        report(configurationLoader.idle() ? latestEpoch : epoch)
      )
      const conditions = yield* Effect.serviceOption(Conditions)
      if (Option.isSome(conditions)) {
        conditions.value.register(() => {
          const is = configurationLoader.check()
          return { name: "configuration", status: is, ok: is === "current" }
        })
      }
      const keys = KeyCache.make((digests) => Effect.provide(KeyRecord.load(digests), context), yield* Effect.scope)

      /** Everything up to `epoch` may have changed. */
      const invalidateAll = (epoch: number) => {
        latestEpoch = Math.max(latestEpoch, epoch)
        keys.forgetAll()
        configurationLoader.request(latestEpoch)
      }

      /**
       * Keys are forgotten here and now, also while a snapshot is being loaded or cannot be: a revocation waits for
       * nothing.
       */
      const applyNotice = ({ change, epoch }: ChangeNotice) => {
        latestEpoch = Math.max(latestEpoch, epoch)
        if (change._tag === "Key") keys.forget(change.id)
        else if (change._tag === "Project") keys.forgetProject(change.id)
        else configurationLoader.request(latestEpoch)
        if (configurationLoader.idle()) report(latestEpoch)
      }

      // "follow, then load": what commits in between is in the load, and its notice only repeats it
      const followNotices = Effect.gen(function* () {
        const notices = yield* database.changes(channel)
        invalidateAll(yield* readEpoch)
        yield* Stream.runForEach(notices, (text) =>
          decodeNotice(text).pipe(
            Effect.map(applyNotice),
            // a notice of a newer version may be about anything
            Effect.catchTag("SchemaError", () =>
              Effect.sync(() =>
                invalidateAll(
                  Option.match(decodeEpoch(text), { onNone: () => latestEpoch, onSome: ({ epoch }) => epoch })
                )
              )
            )
          )
        )
      }).pipe(Effect.scoped)

      // A session that hears nothing any more looks like one to which nothing is said. Two looks at an epoch that is
      // ahead, a second apart, tell them from a notice that is on its way.
      const detectMissedNotices = Effect.gen(function* () {
        const before = latestEpoch
        const now = yield* readEpoch
        if (now <= before) return
        yield* Effect.sleep("1 second")
        if (latestEpoch === before) invalidateAll(now)
      })

      // A revocation of these moments is heard of by the next follow, so the first one begins at once.
      let failures = 0
      yield* Effect.timed(
        Effect.catchCause(followNotices, (cause) =>
          Effect.logWarning("change notices are interrupted; polling until they return", { cause })
        )
      ).pipe(
        Effect.flatMap(([lasted]) => {
          if (Duration.isGreaterThan(lasted, retryAfter)) failures = 0
          return Effect.sleep(retryDelay(failures++))
        }),
        Effect.forever,
        Effect.forkScoped
      )
      yield* Effect.forkScoped(
        Effect.forever(Effect.andThen(Effect.ignoreCause(detectMissedNotices), Effect.sleep("1 second")))
      )

      const policies = EffectivePolicies.makeCache()
      /** The first of many requests of an unused key decides for all of them. */
      const retirementLock = Semaphore.makeUnsafe(1)

      return ControlState.of({
        snapshot: configurationLoader.snapshot,
        check: configurationLoader.check,
        cachedKey: keys.getCached,
        findKey: keys.get,
        policyOf: (key, route, models) => policies(configurationLoader.snapshot().layers, key, route, models),
        limitScopes: (key, effective) => LimitScopes.of(configurationLoader.snapshot().layers, key, effective),
        retireUnusedKey: (digest, key, days, requestId) =>
          Effect.suspend(() =>
            keys.getCached(digest) === key
              ? UnusedKeys.disableUnused(key.id, days, requestId).pipe(
                  Effect.timeout(lookUpTimeout),
                  Effect.mapError((cause) => new KeyCache.ControlStateUnavailable({ cause })),
                  Effect.tap(() => Effect.sync(() => keys.forget(key.id)))
                )
              : Effect.void
          ).pipe(Semaphore.withPermits(retirementLock, 1), Effect.andThen(keys.get(digest)), Effect.provide(context))
      })
    })
  )
}

/** A database that takes longer is as good as gone: the client is told so while it still listens. */
const lookUpTimeout = "2 seconds"

const retryAfter = Duration.seconds(1)

/** How long after so many failures in a row notices are followed again: 0, 100, 200, 400 and 800 ms, then a second. */
const retryDelay = (failures: number): Duration.Duration =>
  failures === 0 ? Duration.zero : Duration.min(Duration.millis(100 * 2 ** (failures - 1)), retryAfter)

/**
 * A process that has come this far has seen its database: where that goes away before the first load, the start waits
 * for it, and the process is not ready until then.
 */
const loadFirstSnapshot = Snapshot.load.pipe(
  Effect.timeout("30 seconds"),
  Effect.tapError((cause) =>
    Effect.logWarning("the configuration cannot be loaded; the start waits for it", { cause })
  ),
  Effect.retry({
    schedule: Schedule.spaced(retryAfter),
    while: (error) => !SqlError.isSqlError(error) || isTransient(error)
  })
)

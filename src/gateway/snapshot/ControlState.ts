import { Clock, Context, Duration, Effect, Layer, Option, Schedule, Semaphore, Stream } from "effect"
import { SqlError } from "effect/sql"
import type { EffectivePolicy } from "../../policy/EffectivePolicy.ts"
import type { PolicyRoute } from "../../policy/routes/CanonicalRoute.ts"
import { AppliedEpoch } from "../../process/AppliedEpoch.ts"
import { Conditions } from "../../process/Conditions.ts"
import { Database } from "../../services/Database.ts"
import { isTransient } from "../../services/SqlState.ts"
import { type ChangeNotice, channel, decodeEpoch, decodeNotice, readEpoch } from "../../state/Changes.ts"
import * as LimitScopes from "../../state/limits/LimitScopes.ts"
import * as UnusedKeys from "../../state/UnusedKeys.ts"
import type { Vault } from "../../state/Vault.ts"
import * as ConfigurationLoader from "./ConfigurationLoader.ts"
import * as EffectivePolicies from "./EffectivePolicies.ts"
import * as KeyCache from "./KeyCache.ts"
import * as KeyRecord from "./KeyRecord.ts"
import * as Snapshot from "./Snapshot.ts"

/**
 * Holds the operators' configuration and a cache of keys, so that requests need not wait for the database. A change
 * notice applies a change within milliseconds. If the notice is lost, polling applies the change within two seconds.
 * While the database is down, the last known state stays in force.
 */
export class ControlState extends Context.Service<
  ControlState,
  {
    readonly snapshot: () => Snapshot.Snapshot
    readonly check: () => ConfigurationLoader.ConfigurationCheck
    readonly cachedKey: (digest: string) => KeyRecord.KeyRecord | undefined
    /** Finds the key whose secret has this SHA-256 digest (hex). A digest without a key is remembered for a second. */
    readonly findKey: (
      digest: string,
      address?: string
    ) => Effect.Effect<Option.Option<KeyRecord.KeyRecord>, KeyCache.ControlStateUnavailable>
    /** Returns the same object until the policy changes. `models` is empty before the body is read. */
    readonly policyOf: (key: KeyRecord.KeyRecord, route: PolicyRoute, models: ReadonlyArray<string>) => EffectivePolicy
    readonly limitScopes: (
      key: KeyRecord.KeyRecord,
      effective: EffectivePolicy
    ) => ReadonlyArray<LimitScopes.LimitScope>
    /** Disables the key if no process has used it for `days`, and returns its current state. */
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
      const initialSnapshot = yield* loadFirstSnapshot
      const appliedEpoch = yield* Effect.serviceOption(AppliedEpoch)
      /** The number of the latest known configuration change. Cached keys already reflect this change. */
      let latestEpoch = initialSnapshot.epoch
      const report = (epoch: number) => {
        if (Option.isSome(appliedEpoch)) appliedEpoch.value.report(epoch)
      }
      report(latestEpoch)
      const configurationLoader = yield* ConfigurationLoader.make(initialSnapshot, (epoch) =>
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

      const invalidateAll = (epoch: number) => {
        latestEpoch = Math.max(latestEpoch, epoch)
        keys.forgetAll()
        configurationLoader.request(latestEpoch)
      }

      /** Removes a changed key at once. A revocation then need not wait until a new snapshot is loaded. */
      const applyNotice = ({ change, epoch }: ChangeNotice) => {
        latestEpoch = Math.max(latestEpoch, epoch)
        if (change._tag === "Key") keys.forget(change.id)
        else if (change._tag === "Project") keys.forgetProject(change.id)
        else configurationLoader.request(latestEpoch)
        if (configurationLoader.idle()) report(latestEpoch)
      }

      // Subscribe before loading. Any change made meanwhile is then either in the load or announced by a notice.
      const followNotices = Effect.gen(function* () {
        const notices = yield* database.changes(channel)
        invalidateAll(yield* readEpoch)
        yield* Stream.runForEach(notices, (text) =>
          decodeNotice(text).pipe(
            Effect.map(applyNotice),
            // This version cannot decode the change in the notice, so it reloads everything.
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

      // A broken subscription looks like a subscription without changes. The database's epoch therefore reveals missed
      // notices. If the epoch is still ahead after a second, the notices were lost and are not only late.
      const detectMissedNotices = Effect.gen(function* () {
        const before = latestEpoch
        const now = yield* readEpoch
        if (now <= before) return
        yield* Effect.sleep("1 second")
        if (latestEpoch === before) invalidateAll(now)
      })

      // The first retry starts at once, because revoked keys stay valid until the new subscription is active.
      let failures = 0
      yield* Effect.timed(
        Effect.catchCause(followNotices, (cause) =>
          Effect.logWarning("change notices are interrupted; polling until they resume", { cause })
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

      const clock = yield* Clock.Clock
      const policies = EffectivePolicies.makeCache(() => clock.currentTimeMillisUnsafe())
      /** While one request disables an unused key, concurrent requests of the key wait. */
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

/** The timeout is short enough that clients still wait for their response and receive the error. */
const lookUpTimeout = "2 seconds"

const retryAfter = Duration.seconds(1)

const retryDelay = (failures: number): Duration.Duration =>
  failures === 0 ? Duration.zero : Duration.min(Duration.millis(100 * 2 ** (failures - 1)), retryAfter)

/** A database outage delays the start of the process instead of failing it. */
const loadFirstSnapshot = Snapshot.load.pipe(
  Effect.timeout("30 seconds"),
  Effect.tapError((cause) => Effect.logWarning("cannot load the configuration; the start waits for it", { cause })),
  Effect.retry({
    schedule: Schedule.spaced(retryAfter),
    while: (error) => !SqlError.isSqlError(error) || isTransient(error)
  })
)

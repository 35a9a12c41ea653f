import { Cause, Context, Data, Effect, Exit, Layer, Option, Schedule, Semaphore } from "effect"
import type { Provider } from "../../../policy/routes/CanonicalRoute.ts"
import type { Ownership } from "../../../policy/routes/Ownership.ts"
import type { UpstreamObject } from "../../../policy/routes/UpstreamObjects.ts"
import { Database } from "../../../services/Database.ts"
import { Redis } from "../../../services/Redis.ts"
import type { KeyRecord } from "../../snapshot/KeyRecord.ts"

class OwnersUnavailable extends Data.TaggedError("OwnersUnavailable")<{ readonly cause: unknown }> {}

/**
 * Stores which key created an object at an upstream. The database holds all owners. Redis caches them, and holds new
 * owners until their usage records reach the database.
 */
export class ObjectOwners extends Context.Service<
  ObjectOwners,
  {
    /**
     * Calls `done` when Redis has stored the owners or has failed. In both cases the usage record later stores the
     * owners in the database.
     */
    readonly rememberUnsafe: (
      provider: Provider,
      objects: ReadonlyArray<UpstreamObject>,
      key: KeyRecord,
      done: () => void
    ) => void
    /** Decides for each object whether the key may use it. An object without a known owner cannot be used. */
    readonly usableUnsafe: (
      provider: Provider,
      objects: ReadonlyArray<UpstreamObject>,
      key: KeyRecord,
      ownership: Ownership,
      done: (exit: Exit.Exit<ReadonlyArray<boolean>, OwnersUnavailable>) => void
    ) => void
  }
>()("svc/gateway/ObjectOwners") {
  static readonly layer = Layer.effect(
    ObjectOwners,
    Effect.gen(function* () {
      const redis = yield* Redis
      const database = yield* Database
      const { sql } = database
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const lookUps = Semaphore.makeUnsafe(maxConcurrentLookUps)

      const redisKeyOf = (provider: Provider, { id, kind }: UpstreamObject) =>
        redis.key(`owners:${provider}:${kind}:${id}`)

      /** Stores the owner of an object unless the object already has one. */
      const storeOwner = (redisKey: string, owner: Owner) =>
        redis.command("SET", redisKey, `${owner.keyId} ${owner.projectId ?? ""}`, "EX", redisTtlSeconds, "NX")

      const rememberUnsafe: ObjectOwners["Service"]["rememberUnsafe"] = (provider, objects, key, done) => {
        const owner = { keyId: key.id, projectId: Option.getOrNull(key.projectId) }
        // Newly created objects cannot have an owner yet. For other objects the owner is looked up first.
        const minted = objects.filter(({ kind }) => newlyMintedKinds.has(kind))
        const named = objects.filter(({ kind }) => !newlyMintedKinds.has(kind))
        const storeAll = (some: ReadonlyArray<UpstreamObject>) =>
          Effect.forEach(some, (object) => storeOwner(redisKeyOf(provider, object), owner), { discard: true })
        const lookUpAndStore = lookUpOwners(provider, named).pipe(
          Effect.flatMap((owners) => storeAll(named.filter((_, index) => owners[index] === undefined))),
          Effect.timeout(lookUpTimeout)
        )
        fork(
          Effect.andThen(storeAll(minted), named.length === 0 ? Effect.void : lookUpAndStore).pipe(
            Effect.tapCause((cause) =>
              Effect.logWarning(
                "cannot store the owner of an upstream object in Redis; the usage record stores it",
                cause
              )
            ),
            Effect.ignore
          )
        ).addObserver(done)
      }

      const selectOwners = (provider: Provider, objects: ReadonlyArray<UpstreamObject>) =>
        sql<{ kind: string; id: string; key_id: string; project_id: string | null }>`
          SELECT kind, id, key_id::text AS key_id, project_id::text AS project_id FROM upstream_objects
          WHERE provider = ${provider} AND (kind, id) IN (
            SELECT * FROM unnest(${objects.map(({ kind }) => kind)}::text[], ${objects.map(({ id }) => id)}::text[]))`

      const lookUpOwners = Effect.fn("ObjectOwners.lookUp")(function* (
        provider: Provider,
        objects: ReadonlyArray<UpstreamObject>
      ) {
        const redisKeys = objects.map((object) => redisKeyOf(provider, object))
        const reply = yield* redis.command("MGET", ...redisKeys)
        const known = (Array.isArray(reply) ? reply : []).map((value) =>
          value === null ? undefined : parseOwner(String(value))
        )
        const missing = objects.filter((_, index) => known[index] === undefined)
        if (missing.length === 0) return known
        const rows = yield* selectOwners(provider, missing)
        const found = new Map(
          rows.map((row) => [redisKeyOf(provider, row), { keyId: row.key_id, projectId: row.project_id }] as const)
        )
        yield* Effect.forEach(found, ([redisKey, owner]) => storeOwner(redisKey, owner), { discard: true })
        return redisKeys.map((redisKey, index) => known[index] ?? found.get(redisKey))
      })

      const usableUnsafe: ObjectOwners["Service"]["usableUnsafe"] = (provider, objects, key, ownership, done) => {
        if (objects.length === 0 || ownership === "shared") return done(Exit.succeed(objects.map(() => true)))
        const projectId = Option.getOrNull(key.projectId)
        const mayUse = (owner: Owner | undefined) =>
          owner !== undefined &&
          (owner.keyId === key.id ||
            (ownership === "project" && owner.projectId !== null && owner.projectId === projectId))
        fork(
          lookUpOwners(provider, objects).pipe(
            Semaphore.withPermits(lookUps, 1),
            Effect.timeout(lookUpTimeout),
            Effect.map((owners) => owners.map(mayUse)),
            Effect.mapError((cause) => new OwnersUnavailable({ cause })),
            Effect.catchCauseIf(Cause.hasDies, (cause) => Effect.fail(new OwnersUnavailable({ cause })))
          )
        ).addObserver(done)
      }

      yield* sql`WITH lock AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${deletionLock}) AS mine)
        DELETE FROM upstream_objects WHERE ctid IN (
        SELECT ctid FROM upstream_objects WHERE (SELECT mine FROM lock) AND kind IN ${sql.in(expiringKinds)} AND created_at < now() - interval '60 days'
        ORDER BY created_at LIMIT 10000) RETURNING 1 AS gone`.pipe(
        Effect.repeat({ while: (rows) => rows.length > 0 }),
        Effect.tapCause((cause) => Effect.logWarning("cannot delete old upstream objects; retrying in an hour", cause)),
        Effect.ignore,
        Effect.repeat(Schedule.spaced("1 hour")),
        Effect.forkScoped
      )

      return ObjectOwners.of({ rememberUnsafe, usableUnsafe })
    })
  )
}

interface Owner {
  readonly keyId: string
  readonly projectId: string | null
}

const parseOwner = (value: string): Owner => {
  const [keyId = "", projectId = ""] = value.split(" ")
  return { keyId, projectId: projectId === "" ? null : projectId }
}

/** Usage records, which contain the owners, reach a healthy database sooner. A longer time would use more memory. */
const redisTtlSeconds = 3600

/** Providers delete objects of these kinds after at most 30 days. */
const expiringKinds = ["response", "message_batch", "batch", "upload", "container", "item", "audio"]

/** The upstream generates these ids for the creating request, so no other key can own them yet. */
const newlyMintedKinds: ReadonlySet<string> = new Set(["response", "chat_completion", "message_batch", "item", "audio"])

const deletionLock = 7_238_412

const lookUpTimeout = "2 seconds"
const maxConcurrentLookUps = 64

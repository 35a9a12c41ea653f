import { Cause, Context, Data, Effect, Exit, Layer, Option, Schedule, Semaphore } from "effect"
import type { Provider } from "../../policy/routes/CanonicalRoute.ts"
import type { Ownership } from "../../policy/routes/Ownership.ts"
import type { UpstreamObject } from "../../policy/routes/UpstreamObjects.ts"
import { Database } from "../../services/Database.ts"
import { Redis } from "../../services/Redis.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"

/** Redis or the database did not say who owns an object. */
export class OwnersUnavailable extends Data.TaggedError("OwnersUnavailable")<{ readonly cause: unknown }> {}

/**
 * Whose the objects are that keys created at an upstream. Redis knows new ones at once, for as long as their usage
 * records may take to the database, and remembers those that were asked for; the database keeps all of them.
 */
export class ObjectOwners extends Context.Service<
  ObjectOwners,
  {
    /**
     * Tells `done` when whoever reads an id can use it, or when Redis does not take it: then the usage record, which
     * carries it to the database, is all.
     */
    readonly rememberUnsafe: (
      provider: Provider,
      objects: ReadonlyArray<UpstreamObject>,
      key: KeyRecord,
      done: () => void
    ) => void
    /** Which of `objects` the key may use, in their order. An object that is not known belongs to nobody. */
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

      /** An object keeps its first owner: an answer that names it again makes nobody else its owner. */
      const storeOwner = (place: string, owner: Owner) =>
        redis.command("SET", place, `${owner.keyId} ${owner.projectId ?? ""}`, "EX", redisTtlSeconds, "NX")

      const rememberUnsafe: ObjectOwners["Service"]["rememberUnsafe"] = (provider, objects, key, done) => {
        const owner = { keyId: key.id, projectId: Option.getOrNull(key.projectId) }
        // an id that the upstream has just made is nobody's; what else an answer names may have an owner already
        const made = objects.filter(({ kind }) => newlyMintedKinds.has(kind))
        const named = objects.filter(({ kind }) => !newlyMintedKinds.has(kind))
        const all = (some: ReadonlyArray<UpstreamObject>) =>
          Effect.forEach(some, (object) => storeOwner(redisKeyOf(provider, object), owner), { discard: true })
        const learned = lookUpOwners(provider, named).pipe(
          Effect.flatMap((owners) => all(named.filter((_, index) => owners[index] === undefined))),
          Effect.timeout(lookUpTimeout)
        )
        fork(
          Effect.andThen(all(made), named.length === 0 ? Effect.void : learned).pipe(
            Effect.tapCause((cause) => Effect.logWarning("the owner of an upstream object is not in Redis yet", cause)),
            Effect.ignore
          )
        ).addObserver(done)
      }

      const selectOwners = (provider: Provider, objects: ReadonlyArray<UpstreamObject>) =>
        sql<{ kind: string; id: string; key_id: string; project_id: string | null }>`
          SELECT kind, id, key_id::text AS key_id, project_id::text AS project_id FROM upstream_objects
          WHERE provider = ${provider} AND (kind, id) IN (
            SELECT * FROM unnest(${objects.map(({ kind }) => kind)}::text[], ${objects.map(({ id }) => id)}::text[]))`

      /** Asks the database about what Redis does not know. */
      const lookUpOwners = Effect.fnUntraced(function* (provider: Provider, objects: ReadonlyArray<UpstreamObject>) {
        const places = objects.map((object) => redisKeyOf(provider, object))
        const reply = yield* redis.command("MGET", ...places)
        const known = (Array.isArray(reply) ? reply : []).map((value) =>
          value === null ? undefined : parseOwner(String(value))
        )
        const missing = objects.filter((_, index) => known[index] === undefined)
        if (missing.length === 0) return known
        const rows = yield* selectOwners(provider, missing)
        const found = new Map(
          rows.map((row) => [redisKeyOf(provider, row), { keyId: row.key_id, projectId: row.project_id }] as const)
        )
        yield* Effect.forEach(found, ([place, owner]) => storeOwner(place, owner), { discard: true })
        return places.map((place, index) => known[index] ?? found.get(place))
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

      // of several processes one works at a time: the lock spares the others the same work
      yield* sql`WITH lock AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${deletionLock}) AS mine)
        DELETE FROM upstream_objects WHERE ctid IN (
        SELECT ctid FROM upstream_objects WHERE (SELECT mine FROM lock) AND kind IN ${sql.in(expiringKinds)} AND created_at < now() - interval '60 days'
        ORDER BY created_at LIMIT 10000) RETURNING 1 AS gone`.pipe(
        Effect.repeat({ while: (rows) => rows.length > 0 }),
        Effect.tapCause((cause) => Effect.logWarning("old upstream objects wait for the database", cause)),
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

/** Longer than a usage record waits for a healthy database, and short enough for many responses to fit into memory. */
const redisTtlSeconds = 3600

/** Kinds that providers delete on their own, after 30 days or less. */
const expiringKinds = ["response", "message_batch", "batch", "upload", "container", "item", "audio"]

/** Kinds whose ids the upstream makes for the request that names them first. */
const newlyMintedKinds: ReadonlySet<string> = new Set(["response", "chat_completion", "message_batch", "item", "audio"])

const deletionLock = 7_238_412

/** The client is waiting. */
const lookUpTimeout = "2 seconds"
const maxConcurrentLookUps = 64

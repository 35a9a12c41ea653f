import { createHash, randomUUID } from "node:crypto"
import { Array as Arr, Clock, Effect } from "effect"
import { ofMillis, withOffset } from "../../messaging/envelope/Timestamp.ts"
import type { Redis, RedisError } from "../../services/Redis.ts"
import { texts } from "../dead-letters/DeadLetterIndex.ts"
import { UnknownCursor } from "../dead-letters/DeadLetterStore.ts"
import { type CreateResult, type JobKind, scriptsOf } from "./JobScripts.ts"

/** A job that is not stored yet. */
export interface NewJob {
  readonly idempotencyKey?: string | undefined
  /** The hash of the request. The same idempotency key with another one is refused. */
  readonly fingerprint: string
  readonly fields: Readonly<Record<string, string | number>>
  readonly ids: ReadonlyArray<string>
  /** The list of the running job. `undefined`: the job has ended already. */
  readonly list: string | undefined
}

export interface Bounds {
  /** The oldest jobs that are not running are deleted first. */
  readonly maxJobs: number
  readonly maxRunning: number
}

export interface StoredJobs {
  /** The key that scripts receive. */
  readonly keys: ReadonlyArray<string>
  readonly keyOf: (id: string) => string
  readonly create: (job: NewJob) => Effect.Effect<CreateResult, RedisError>
  /** Returns the hash of a job. It is empty if there is none. */
  readonly fields: (id: string) => Effect.Effect<Readonly<Record<string, string>>, RedisError>
  /** Lists jobs, newest first. `decode` returns `undefined` for a job that is gone. */
  readonly list: <A>(
    page: { readonly limit: number; readonly cursor?: string | undefined },
    decode: (id: string, fields: Readonly<Record<string, string>>) => A | undefined
  ) => Effect.Effect<
    { readonly items: ReadonlyArray<A>; readonly next_cursor: string | null },
    RedisError | UnknownCursor
  >
  /** The ids of running jobs of a list, in the order of creation. */
  readonly idsIn: (list: string) => Effect.Effect<ReadonlyArray<string>, RedisError>
  /** Takes or renews the lease of a job. Returns false if another worker has the lease or the job has ended. */
  readonly take: (id: string, worker: string, leaseMs: number) => Effect.Effect<boolean, RedisError>
}

const idempotencyKeySeconds = 86_400

/** Stores jobs of one kind in Redis. The keys begin with `base`. */
export const make = (
  redis: Redis["Service"],
  { base, kind, maxJobs, maxRunning }: Bounds & { readonly base: string; readonly kind: JobKind }
): StoredJobs => {
  const scripts = scriptsOf(kind)
  const keys = [`${base}stats`]
  const keyOf = (id: string) => `${base}${kind.job}:${id}`
  const all = `${base}${kind.jobs}`

  const fields = Effect.fnUntraced(function* (id: string) {
    if (!isJobId(id)) return {}
    const pairs = Arr.chunksOf(texts(yield* redis.command("HGETALL", keyOf(id))), 2)
    return Object.fromEntries(pairs.map(([name = "", value = ""]) => [name, value]))
  })

  return {
    keys,
    keyOf,
    fields,
    create: ({ fields, fingerprint, idempotencyKey, ids, list = "" }) => {
      const pairs = Object.entries(fields).flat()
      return redis.run(scripts.create, keys, [
        randomUUID(),
        idempotencyKey === undefined ? "" : createHash("sha256").update(idempotencyKey).digest("hex"),
        fingerprint,
        idempotencyKeySeconds,
        maxJobs,
        maxRunning,
        list,
        pairs.length,
        ...pairs,
        ...ids
      ])
    },
    list: Effect.fnUntraced(function* ({ cursor, limit }, decode) {
      if (cursor !== undefined && !/^[1-9]\d{0,14}$/.test(cursor)) return yield* new UnknownCursor({ cursor })
      const newest = Number((yield* redis.command("HGET", `${base}stats`, "jobs")) ?? 0)
      if (cursor !== undefined && Number(cursor) > newest) return yield* new UnknownCursor({ cursor })
      const above = cursor === undefined ? "+inf" : `(${cursor}`
      const ids = texts(yield* redis.command("ZREVRANGEBYSCORE", all, above, "-inf", "LIMIT", 0, limit + 1))
      const found = yield* Effect.forEach(
        ids.slice(0, limit),
        (id) => Effect.map(fields(id), (job) => decode(id, job)),
        { concurrency: 16 }
      )
      const last = ids.length > limit ? yield* redis.command("ZSCORE", all, ids[limit - 1] ?? "") : null
      return { items: found.filter((job) => job !== undefined), next_cursor: last === null ? null : String(last) }
    }),
    idsIn: (list) =>
      Effect.map(redis.command("ZRANGEBYSCORE", `${all}:${list}`, "-inf", "+inf", "LIMIT", 0, maxRunning), texts),
    take: Effect.fnUntraced(function* (id, worker, leaseMs) {
      const millis = yield* Clock.currentTimeMillis
      return yield* redis.run(scripts.take, keys, [id, worker, millis, millis + leaseMs])
    })
  }
}

/** The time as jobs have it. */
export const now = Effect.map(Clock.currentTimeMillis, (millis) => withOffset(ofMillis(millis)))

/** Returns whether a text is a job id. Any other text could select a different Redis key, such as `<id>:ids`. */
export const isJobId = (id: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)

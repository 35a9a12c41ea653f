import { randomUUID } from "node:crypto"
import { Effect, Layer, Option, Schedule, Schema, Stream, SubscriptionRef } from "effect"
import { Redis, type Reply } from "../services/Redis.ts"
import { Lifecycle } from "./Lifecycle.ts"

/** What a process says of itself. */
export const ProcessIdentity = Schema.Struct({
  role: Schema.String,
  version: Schema.String,
  host: Schema.String,
  pid: Schema.Int
})
export type ProcessIdentity = typeof ProcessIdentity.Type

export const RunningProcess = Schema.Struct({
  ...ProcessIdentity.fields,
  id: Schema.String,
  /** True if the process looks whether somebody has asked it to drain. Earlier releases do not. */
  drains: Schema.optionalKey(Schema.Boolean),
  phase: Schema.Literals(["starting", "serving", "draining", "retiring"]),
  /** Milliseconds since 1970, by the clock of Redis, which all processes share. */
  startedAt: Schema.Int,
  seenAt: Schema.Int
})
export type RunningProcess = typeof RunningProcess.Type

const beatSeconds = 10

/** After three missed beats a process counts as ended. */
const goneMs = 3 * beatSeconds * 1_000

const hash = "processes"
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(RunningProcess))

/** A process that does not notice it within this time is not drained by it. */
const askedSeconds = 3 * beatSeconds

/** Asks a process to drain. It notices it with its next beat. */
export const drain = Effect.fn("RunningProcesses.drain")(function* (id: string) {
  const redis = yield* Redis
  yield* redis.command("SET", redis.key(askedToDrain(id)), "1", "EX", askedSeconds)
})

const askedToDrain = (id: string) => `processes:drain:${id}`

/**
 * Tells the other processes of the installation of this one, until it ends. Without Redis, nobody is told. Runs `stop`
 * when somebody asks this process to drain.
 */
export const announce = (identity: ProcessIdentity, stop: Effect.Effect<void>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const redis = yield* Redis
      const lifecycle = yield* Lifecycle
      const id = randomUUID()
      const key = redis.key(hash)
      let startedAt: number | undefined
      const beat = Effect.gen(function* () {
        const seenAt = yield* now
        startedAt ??= seenAt
        const phase = yield* SubscriptionRef.get(lifecycle)
        const process: RunningProcess = { ...identity, id, drains: true, phase, startedAt, seenAt }
        yield* redis.command("HSET", key, id, JSON.stringify(process))
        if ((yield* redis.command("DEL", redis.key(askedToDrain(id)))) === 1) yield* stop
      }).pipe(Effect.provideService(Redis, redis), Effect.ignore)
      yield* Effect.addFinalizer(() => Effect.ignore(redis.command("HDEL", key, id)))
      yield* Effect.forkScoped(Effect.ignore(forgetEnded))
      yield* Effect.forkScoped(Effect.repeat(beat, Schedule.spaced(`${beatSeconds} seconds`)))
      yield* Effect.forkScoped(Stream.runForEach(SubscriptionRef.changes(lifecycle), () => beat))
    })
  )

/** The processes that run now, the oldest first. */
export const list = Effect.gen(function* () {
  return (yield* read).filter(({ isGone }) => !isGone).flatMap(({ process }) => Option.toArray(process))
}).pipe(Effect.map((found) => found.sort((a, b) => a.startedAt - b.startedAt)))

/** Processes that were killed leave their entry behind. */
const forgetEnded = Effect.gen(function* () {
  const redis = yield* Redis
  const gone = (yield* read).filter(({ isGone }) => isGone).map(({ id }) => id)
  if (gone.length > 0) yield* redis.command("HDEL", redis.key(hash), ...gone)
})

const read = Effect.gen(function* () {
  const redis = yield* Redis
  const time = yield* now
  return pairsOf(yield* redis.command("HGETALL", redis.key(hash))).map(([id, text]) => {
    // a newer version may write what this one cannot read
    const process = decode(text)
    return { id, process, isGone: Option.exists(process, ({ seenAt }) => time - seenAt > goneMs) }
  })
})

const pairsOf = (reply: Reply): ReadonlyArray<readonly [name: string, value: string]> => {
  const items = Array.isArray(reply) ? reply.map(String) : []
  return items.flatMap((name, place) => (place % 2 === 0 ? [[name, items[place + 1] ?? ""] as const] : []))
}

/** The time of Redis in milliseconds: `TIME` returns seconds and microseconds. */
const now = Effect.gen(function* () {
  const reply = yield* (yield* Redis).command("TIME")
  const [seconds = 0, micros = 0] = Array.isArray(reply) ? reply.map(Number) : []
  return seconds * 1_000 + Math.floor(micros / 1_000)
})

import { Deferred, Effect, Exit } from "effect"
import { type Broker, BrokerError, type Field } from "../../services/Broker.ts"
import type { Call, Redis, RedisError, Script } from "../../services/Redis.ts"
import { digestOf, type StreamOffset } from "./LowWaterMark.ts"

/**
 * How far a stream has been copied into the store: the last message up to which everything is stored, in one key that all
 * replicas share, as they fill the same store. The digest of that message is kept beside its offset: a stream that was
 * deleted and declared again counts from 0, and its offsets mean something else.
 *
 * A Redis that crashes, or is replaced by a replica that lagged behind, loses what was written last. The bookmark is
 * written behind the events that it stands for, so one that is found is right in whatever is left. But events that were
 * stored since may be gone while it is just where it was left, and then it must not be moved over them. So it is moved
 * only within one history of the data, the one that Redis had when it was read and that all events since were stored in.
 * Redis gives each history a name of its own, a new one with every start and every promotion (`master_replid`), and the
 * script that writes the bookmark asks for it in the same step, of the server that it writes to: no connection has to be
 * watched, and what stands in between does not matter. It costs one `INFO` for a second or 1,000 events. Now and then a
 * history gets another name and has lost nothing (the first replica comes); then the last second is read twice.
 * Where its user may not ask, histories have no name: then only a bookmark that is not even where it was left is noticed.
 *
 * This holds of one Redis. Of a Redis Cluster each node loses what was its own, and the one that has the bookmark speaks
 * for itself alone.
 */
export interface StreamCheckpoint {
  /** Where to read from. `otherwise`: where nothing is known. Forgets a bookmark that the stream contradicts. */
  readonly start: (initialOffset: Field) => Effect.Effect<CheckpointSession, RedisError | BrokerError>
}

/** What is read and stored from one start to the next. */
export interface CheckpointSession {
  readonly from: Field

  /**
   * Moves the bookmark forward, never back; without a place it only looks. `lost`: events that were stored may be gone,
   * as Redis has another history by now, or the bookmark is not even where it was left; nothing was moved.
   */
  readonly advance: (to?: Pick<StreamOffset, "offset" | "digest">) => Effect.Effect<"moved" | "lost", RedisError>
}

export const make = (
  redis: Redis["Service"],
  broker: Broker["Service"],
  { key, queue }: { readonly key: string; readonly queue: string }
): StreamCheckpoint => {
  /** `left`: up to where this process knows everything to be stored. */
  const sessionFrom = (from: Field, history: string, storedUpTo = -1): CheckpointSession => ({
    from,
    advance: (to) =>
      Effect.map(
        redis.run(
          advanceCheckpoint,
          [key],
          [to?.offset ?? -1, to === undefined ? "" : encodeCheckpoint(to), storedUpTo, history]
        ),
        (outcome) => {
          if (outcome === "moved") storedUpTo = Math.max(storedUpTo, to?.offset ?? -1)
          return outcome
        }
      )
  })

  // at the first start, and not with every one that a broken connection brings
  let isWarned = false

  const start: StreamCheckpoint["start"] = Effect.fnUntraced(function* (initialOffset) {
    const { history, text } = yield* redis.run(findCheckpoint, [key], [])
    if (history === "" && !isWarned) {
      isWarned = true
      yield* Effect.logWarning(
        `Redis refuses INFO to its user: what it loses of the last second in a crash or a failover is not noticed then, and not read again from stream ${queue}. Allow it (ACL SETUSER <user> +info)`
      )
    }
    if (text === startOfStream) return sessionFrom("first", history)
    const checkpoint = decodeCheckpoint(text)
    if (checkpoint === undefined) return sessionFrom(initialOffset, history)
    const { digest, offset } = checkpoint
    const found = yield* messageAt(broker, queue, offset)
    if (found !== undefined && (found.offset > offset || found.digest === digest)) {
      const missingCount = found.offset - offset - 1
      if (missingCount > 0) {
        yield* Effect.logWarning(
          `Stream ${queue} no longer holds ${missingCount} messages behind offset ${offset}: they were never stored`
        )
      }
      return sessionFrom(offset + 1, history, offset)
    }
    yield* Effect.logWarning(
      `Stream ${queue} is not the one that was stored up to offset ${offset}, or has lost its end: it is read from its beginning`
    )
    yield* redis.run(resetCheckpoint, [key], [text, startOfStream])
    return sessionFrom("first", history)
  })

  return { start }
}

interface Checkpoint {
  readonly offset: number
  readonly digest: string
}

/** In place of a mark. */
const startOfStream = "beginning"

const encodeCheckpoint = ({ digest, offset }: Checkpoint): string => `${offset} ${digest}`

const decodeCheckpoint = (text: string): Checkpoint | undefined => {
  const [, offset, digest = ""] = /^(\d{1,15}) (\w+)$/.exec(text) ?? []
  return offset === undefined ? undefined : { offset: Number(offset), digest }
}

/** For a stream to deliver anything. */
const deliveryTimeout = "30 seconds"

/** For what is delivered beside the end of a stream, on the same channel. */
const confirmationWait = "3 seconds"

/**
 * The message at an offset, the first behind it where the stream's front is cut off, or none where the stream ends before
 * it. Behind the end a consumer waits, and is told nothing, as by a broker that is slow; and what the broker says of a
 * stream's length is old, or 0. So the end is asked for as well: it is before the offset where that delivers and the offset,
 * which was asked for first, does not. Where neither delivers, nothing is known, and nothing is to be done.
 */
const messageAt = Effect.fnUntraced(function* (broker: Broker["Service"], queue: string, offset: number) {
  const { consume, ended } = yield* broker.channel({ prefetch: 1 })
  const first = Effect.fnUntraced(function* (from: Field) {
    const firstMessage = Deferred.makeUnsafe<Checkpoint>()
    yield* consume({
      queue,
      arguments: { "x-stream-offset": from },
      onDelivery: ({ content, properties }) => {
        const at = offsetOf(properties)
        if (at !== undefined) Deferred.doneUnsafe(firstMessage, Exit.succeed({ offset: at, digest: digestOf(content) }))
      }
    })
    return Deferred.await(firstMessage)
  })
  const atOffset = yield* first(offset)
  const last = yield* first("last")
  // it is the first of several that were written at once, and they may reach as far as the offset
  const offsetMissing = Effect.flatMap(last, (last) =>
    last.offset > offset ? Effect.never : Effect.sleep(confirmationWait)
  )
  return yield* Effect.raceAllFirst([atOffset, Effect.as(offsetMissing, undefined), ended]).pipe(
    Effect.timeoutOrElse({
      duration: deliveryTimeout,
      orElse: () =>
        Effect.fail(
          new BrokerError({
            operation: "consume",
            reason: "timeout",
            message: `Stream ${queue} delivers nothing, so it cannot be told whether it was stored up to offset ${offset}`
          })
        )
    })
  )
}, Effect.scoped)

/** Rounds in which the end of a stream is listened to, and how long one is. */
const endRounds = 4
const endRound = "250 millis"

/**
 * The offset of the last message of a stream; -1 of an empty one. The last chunk is read until nothing more comes, or for
 * a second where messages keep coming: what was there before is read by then.
 */
export const lastOffsetOf = Effect.fnUntraced(function* (broker: Broker["Service"], queue: string) {
  const { consume, ended } = yield* broker.channel({ prefetch: 1_000 })
  let end = -1
  const { cancel } = yield* consume({
    queue,
    arguments: { "x-stream-offset": "last" },
    onDelivery: ({ properties, settle }) => {
      settle("ack")
      end = Math.max(end, offsetOf(properties) ?? -1)
    }
  })
  const readUntilQuiet = Effect.gen(function* () {
    for (let round = 0; round < endRounds; round++) {
      const before = end
      yield* Effect.sleep(endRound)
      if (end >= 0 && end === before) break
    }
    // a broker that stands still is as quiet as an empty stream, and does not answer
    yield* broker.ping
  })
  yield* Effect.raceFirst(readUntilQuiet, ended)
  yield* cancel
  return end
}, Effect.scoped)

/** Where a delivery stands in its stream. */
export const offsetOf = (properties: { readonly headers?: Readonly<Record<string, unknown>> }): number | undefined => {
  const offset = properties.headers?.["x-stream-offset"]
  return typeof offset === "number" ? offset : undefined
}

/** No name where `INFO` is refused: a user without dangerous commands has a hub all the same. */
const historyLua = `
local told = redis.pcall('INFO', 'replication')
local history = type(told) == 'string' and string.match(told, 'master_replid:(%w+)') or ''`

/** In memory nobody is refused anything. */
const historyOf = (call: Call): string =>
  /master_replid:([0-9A-Za-z]+)/.exec(String(call("INFO", "replication")))?.[1] ?? ""

/** KEYS: bookmark. Answers its text, or nothing, and the name of the history that it was found in. */
const findCheckpoint: Script<{ readonly text: string; readonly history: string }> = {
  name: "find-stream-bookmark",
  lua: `${historyLua}
return {redis.call('GET', KEYS[1]) or '', history}`,
  step: (call, [key = ""]) => [call("GET", key) ?? "", historyOf(call)],
  decode: (reply) => {
    const [text, history] = Array.isArray(reply) ? reply : []
    return { text: String(text), history: String(history) }
  }
}

/** KEYS: bookmark. ARGV: offset (or -1, to move it nowhere), the mark itself, where it was left at least, history. */
const advanceCheckpoint: Script<"moved" | "lost"> = {
  name: "move-stream-bookmark",
  lua: `${historyLua}
if history ~= ARGV[4] then return 0 end
local at = tonumber(string.match(redis.call('GET', KEYS[1]) or '', '^%d+') or '-1')
if at < tonumber(ARGV[3]) then return 0 end
if at < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[2]) end
return 1`,
  step: (call, [key = ""], [offset = "", mark = "", left = "", history = ""]) => {
    if (historyOf(call) !== history) return 0
    const at = Number(/^\d+/.exec(String(call("GET", key) ?? ""))?.[0] ?? -1)
    if (at < Number(left)) return 0
    if (at < Number(offset)) call("SET", key, mark)
    return 1
  },
  decode: (reply) => (reply === 0 ? "lost" : "moved")
}

/**
 * KEYS: bookmark. ARGV: the mark that it holds, what stands for the beginning. Another replica may have begun anew since,
 * and one that comes now has to begin there as well: what is known is that nothing is stored.
 */
const resetCheckpoint: Script<void> = {
  name: "forget-stream-bookmark",
  lua: `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) end
return 0`,
  step: (call, [key = ""], [mark, beginning = ""]) => {
    if (call("GET", key) === mark) call("SET", key, beginning)
    return 0
  },
  decode: () => {}
}

import { Deferred, Effect, Exit } from "effect"
import { type Broker, BrokerError, type Field } from "../../services/Broker.ts"
import type { Call, Redis, RedisError, Script } from "../../services/Redis.ts"
import { digestOf, type StreamOffset } from "./LowWaterMark.ts"

/**
 * Records in Redis the offset of a stream up to which all events are stored. All hubs share the record. It contains a
 * digest of the message at that offset, which reveals a stream that was redeclared and counts from 0 again.
 *
 * A Redis that crashes or fails over may lose its latest writes. A checkpoint is written after its events, so a
 * checkpoint that survives is correct. But events stored after it may be lost, and the checkpoint must not move past
 * them. Every restart and every promotion changes the replication id of Redis (`master_replid`), so the checkpoint
 * moves only while this id is the same as at the start of the session. The script compares the id in the same step, on
 * the server that it writes to, which costs one `INFO`. The id may also change without a loss; then about a second of
 * the stream is read twice.
 *
 * If the Redis user may not run `INFO`, only a checkpoint that moved backwards reveals a loss. On a Redis Cluster the
 * comparison covers only the node that holds the checkpoint.
 */
interface StreamCheckpoint {
  /**
   * Returns the offset to read from. If the stream does not contain the checkpoint's message, deletes the checkpoint.
   */
  readonly start: (initialOffset: Field) => Effect.Effect<CheckpointSession, RedisError | BrokerError>
}

export interface CheckpointSession {
  readonly from: Field

  /**
   * Moves the checkpoint forward to `to`, or only compares if `to` is missing. Returns `lost`, and writes nothing, if
   * stored events may be lost: the replication id differs, or the checkpoint in Redis is an older one.
   */
  readonly advance: (to?: Pick<StreamOffset, "offset" | "digest">) => Effect.Effect<"moved" | "lost", RedisError>
}

export const make = (
  redis: Redis["Service"],
  broker: Broker["Service"],
  { key, queue }: { readonly key: string; readonly queue: string }
): StreamCheckpoint => {
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

  let isWarned = false

  const start: StreamCheckpoint["start"] = Effect.fnUntraced(function* (initialOffset) {
    const { history, text } = yield* redis.run(findCheckpoint, [key], [])
    if (history === "" && !isWarned) {
      isWarned = true
      yield* Effect.logWarning(
        `The Redis user may not run INFO, so the hub cannot detect that Redis lost its latest writes, and does not repeat these writes from stream ${queue}. Allow the command (ACL SETUSER <user> +info)`
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
          `Stream ${queue} dropped ${missingCount} messages after offset ${offset} before the hub stored them in Redis, so histories lack them: raise the retention of the stream`
        )
      }
      return sessionFrom(offset + 1, history, offset)
    }
    yield* Effect.logWarning(
      `Stream ${queue} was redeclared after it was stored up to offset ${offset}, or it lost its last messages: the hub reads it from the beginning`
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

const startOfStream = "beginning"

const encodeCheckpoint = ({ digest, offset }: Checkpoint): string => `${offset} ${digest}`

const decodeCheckpoint = (text: string): Checkpoint | undefined => {
  const [, offset, digest = ""] = /^(\d{1,15}) (\w+)$/.exec(text) ?? []
  return offset === undefined ? undefined : { offset: Number(offset), digest }
}

const deliveryTimeout = "30 seconds"

const confirmationWait = "3 seconds"

/**
 * Returns the message at an offset. If it was deleted by the stream's retention, returns the first one after it.
 * Returns `undefined` if the stream ends before the offset.
 *
 * A consumer that starts beyond the end receives nothing, just like one of a slow broker. So a second consumer reads
 * the end of the stream: if its message arrives and that of the first consumer does not, the stream ends before the
 * offset.
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
  // The subscription starts at the beginning of the last chunk, which may contain the offset.
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
            message: `Stream ${queue} delivered nothing in time, so the hub cannot verify its checkpoint at offset ${offset}`
          })
        )
    })
  )
}, Effect.scoped)

const endRounds = 4
const endRound = "250 millis"

/** Returns the offset of the last message, or -1 if there is none. Reads the last chunk until nothing more arrives. */
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
    // A broker that hangs delivers nothing, like an empty stream, but does not respond to a ping either.
    yield* broker.ping
  })
  yield* Effect.raceFirst(readUntilQuiet, ended)
  yield* cancel
  return end
}, Effect.scoped)

export const offsetOf = (properties: { readonly headers?: Readonly<Record<string, unknown>> }): number | undefined => {
  const offset = properties.headers?.["x-stream-offset"]
  return typeof offset === "number" ? offset : undefined
}

const historyLua = `
local info = redis.pcall('INFO', 'replication')
local history = type(info) == 'string' and string.match(info, 'master_replid:(%w+)') or ''`

const historyOf = (call: Call): string =>
  /master_replid:([0-9A-Za-z]+)/.exec(String(call("INFO", "replication")))?.[1] ?? ""

/** KEYS: checkpoint. Returns the checkpoint or an empty string, and the replication id. */
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

/** KEYS: checkpoint. ARGV: new offset (-1 to compare only), new checkpoint, lowest expected offset, replication id. */
const advanceCheckpoint: Script<"moved" | "lost"> = {
  name: "move-stream-bookmark",
  lua: `${historyLua}
if history ~= ARGV[4] then return 0 end
local at = tonumber(string.match(redis.call('GET', KEYS[1]) or '', '^%d+') or '-1')
if at < tonumber(ARGV[3]) then return 0 end
if at < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[2]) end
return 1`,
  step: (call, [key = ""], [offset = "", checkpoint = "", storedUpTo = "", history = ""]) => {
    if (historyOf(call) !== history) return 0
    const at = Number(/^\d+/.exec(String(call("GET", key) ?? ""))?.[0] ?? -1)
    if (at < Number(storedUpTo)) return 0
    if (at < Number(offset)) call("SET", key, checkpoint)
    return 1
  },
  decode: (reply) => (reply === 0 ? "lost" : "moved")
}

/** KEYS: checkpoint. ARGV: the expected checkpoint, its replacement. */
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

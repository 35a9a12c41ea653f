import { Deferred, Effect, Exit } from "effect"
import { type Broker, BrokerError, type Field } from "../../services/Broker.ts"
import type { Call, Redis, RedisError, Script } from "../../services/Redis.ts"
import { digestOf, type StreamOffset } from "./LowWaterMark.ts"

/**
 * Stores a checkpoint in Redis: the offset of a stream up to which all events are stored. All hubs share the
 * checkpoint. It contains a digest of the message at that offset. A different digest reveals that the stream was
 * redeclared and its offsets started at 0 again.
 *
 * A crash or failover of Redis may lose its latest writes. A checkpoint that survives is correct, because it is written
 * after its events. But events stored after the checkpoint may be lost, and the checkpoint must not move past them.
 * Every restart and failover changes the replication id of Redis (`master_replid`). So the checkpoint moves only while
 * this id is the same as at the start of the session. If the id changes without a loss, the hub reads about one second
 * of the stream twice.
 *
 * If the Redis user may not run `INFO`, the hub detects a loss only if the checkpoint has moved backwards. On a Redis
 * Cluster, the hub compares only the id of the node that holds the checkpoint.
 */
interface StreamCheckpoint {
  /**
   * Returns a session that continues after the checkpoint, or at `initialOffset` without a checkpoint. If the stream
   * was redeclared, the session starts at the first message.
   */
  readonly start: (initialOffset: Field) => Effect.Effect<CheckpointSession, RedisError | BrokerError>
}

export interface CheckpointSession {
  readonly from: Field

  /**
   * Moves the checkpoint forward to `to`, or only checks it if `to` is missing. Returns `lost` and writes nothing if
   * Redis may have lost events. The sign of a loss is a new replication id or a checkpoint that has moved backwards.
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
        `The Redis user may not run INFO, so the hub cannot detect whether Redis lost its latest writes. Lost events of stream ${queue} will be missing from histories. Allow the command with ACL SETUSER <user> +info.`
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
          `Stream ${queue} deleted ${missingCount} messages after offset ${offset} before the hub stored them in Redis. These events are missing from histories. Raise the retention of the stream.`
        )
      }
      return sessionFrom(offset + 1, history, offset)
    }
    yield* Effect.logWarning(
      `Stream ${queue} no longer has the message at offset ${offset}, which the hub stored last. The stream was redeclared or lost messages, so the hub reads the stream from the beginning.`
    )
    yield* redis.run(resetCheckpoint, [key], [text, startOfStream])
    return sessionFrom("first", history)
  })

  return { start }
}

/**
 * Returns where a reader of the stream continues after `checkpoint`: at the next offset, or at the first message if the
 * stream was redeclared or lost messages.
 */
export const resumeAfter = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  queue: string,
  checkpoint: string | undefined
): Effect.fn.Return<Field, BrokerError> {
  const decoded = checkpoint === undefined ? undefined : decodeCheckpoint(checkpoint)
  if (decoded === undefined) return "first"
  const found = yield* messageAt(broker, queue, decoded.offset)
  const isSame = found !== undefined && (found.offset > decoded.offset || found.digest === decoded.digest)
  return isSame ? decoded.offset + 1 : "first"
})

interface Checkpoint {
  readonly offset: number
  readonly digest: string
}

const startOfStream = "beginning"

export const encodeCheckpoint = ({ digest, offset }: Checkpoint): string => `${offset} ${digest}`

const decodeCheckpoint = (text: string): Checkpoint | undefined => {
  const [, offset, digest = ""] = /^(\d{1,15}) (\w+)$/.exec(text) ?? []
  return offset === undefined ? undefined : { offset: Number(offset), digest }
}

const deliveryTimeout = "30 seconds"

const confirmationWait = "3 seconds"

/**
 * Returns the message at an offset. If the stream's retention has deleted that message, returns the next one. Returns
 * `undefined` if the stream ends before the offset.
 *
 * A consumer receives nothing if its offset is after the end of the stream, or if the broker is slow. A second consumer
 * at the end of the stream tells these cases apart. If only the second consumer receives a message, the stream ends
 * before the offset.
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
  // A consumer from `last` starts at the beginning of the last chunk. The offset may still follow in that chunk.
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

/** Returns the offset of the last message in the stream, or -1 if the stream is empty. */
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
    // If no message arrives, either the stream is empty or the broker hangs. A ping fails if the broker hangs.
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

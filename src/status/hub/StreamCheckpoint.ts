import { Deferred, Effect, Exit } from "effect"
import { type Broker, BrokerError, type Field } from "../../services/Broker.ts"
import type { Call, Redis, RedisError, Script } from "../../services/Redis.ts"
import { digestOf, type StreamOffset } from "./LowWaterMark.ts"

/**
 * Records in Redis how far a stream is stored: the last message up to which everything is stored. All hub replicas
 * share the key. The digest of that message reveals a stream that was redeclared and counts its offsets from 0 again.
 *
 * A Redis that crashes or fails over may lose its latest writes. The checkpoint is written after the events that it
 * covers, so a checkpoint that survives is valid. But events stored after it may be lost, and it must not be advanced
 * over them. So it is advanced only while Redis has the replication history (`master_replid`) that it had when the
 * session began; every restart and every promotion changes it. The script compares the history in the same step, on the
 * server that it writes to. This costs one `INFO` per checkpoint. A history can also change without a loss; then about
 * a second of the stream is read twice.
 *
 * If the user may not run `INFO`, only a checkpoint that moved backwards reveals a loss. On a Redis Cluster the check
 * covers only the node that holds the checkpoint.
 */
export interface StreamCheckpoint {
  /** Returns the offset to read from. Resets a checkpoint that contradicts the stream. */
  readonly start: (initialOffset: Field) => Effect.Effect<CheckpointSession, RedisError | BrokerError>
}

export interface CheckpointSession {
  readonly from: Field

  /**
   * Advances the checkpoint, never backwards; without `to` it only checks. `lost`: stored events may be lost, because
   * Redis has a different history or an older checkpoint. Nothing was written.
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
        `The Redis user may not run INFO: if Redis loses its latest writes in a crash or failover, the hub cannot detect it and does not read them again from stream ${queue}. Allow the command (ACL SETUSER <user> +info)`
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
          `Stream ${queue} no longer holds ${missingCount} messages after offset ${offset}: they were never stored. Raise the retention of the stream`
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

/** Grace period for the message at the offset after the end of the stream has arrived on the same channel. */
const confirmationWait = "3 seconds"

/**
 * Returns the message at an offset, the first one after it if the stream was truncated, or `undefined` if the stream
 * ends before it.
 *
 * A consumer beyond the end receives nothing, which looks like a slow broker. So a second consumer reads the end: if
 * the end arrives and the offset, which was requested first, does not, the stream ends before it.
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
  // the end is the first message of a chunk, which may reach as far as the offset
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

/** The offset of the last message; -1 if the stream is empty. Reads the last chunk until a round brings nothing new. */
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
    // a broker that hangs is as quiet as an empty stream, but does not respond to a ping
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

/** KEYS: checkpoint. Returns its text or an empty string, and the replication history. */
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

/**
 * KEYS: checkpoint. ARGV: offset (or -1, to check only), text of the checkpoint, minimum offset expected in Redis,
 * replication history.
 */
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

/** KEYS: checkpoint. ARGV: the expected text, the replacement. */
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

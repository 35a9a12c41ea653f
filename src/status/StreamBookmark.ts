import { Deferred, Effect, Exit, Option } from "effect"
import type { Broker, BrokerError, Field } from "../services/Broker.ts"
import type { Redis, RedisError, Script } from "../services/Redis.ts"
import { digestOf, type Place } from "./StreamProgress.ts"

/**
 * How far a stream has been copied into the store: the last message up to which everything is stored, in one key that all
 * replicas share, as they fill the same store. The digest of that message is kept beside its offset: a stream that was
 * deleted and declared again counts from 0, and its offsets mean something else.
 */
export interface StreamBookmark {
  /** Where a subscription begins. `otherwise`: where nothing is known. Forgets a bookmark that the stream contradicts. */
  readonly start: (otherwise: Field) => Effect.Effect<Field, RedisError | BrokerError>

  /**
   * Moves the bookmark forward, never back. `lost`: it is not even where it was left, so Redis has lost what was written
   * last, and events with it; nothing was moved.
   */
  readonly move: (to: Pick<Place, "offset" | "digest">) => Effect.Effect<"moved" | "lost", RedisError>
}

export const make = (
  redis: Redis["Service"],
  broker: Broker["Service"],
  { key, queue }: { readonly key: string; readonly queue: string }
): StreamBookmark => {
  /** That this process knows to be stored. */
  let left = -1

  const start = Effect.fnUntraced(function* (otherwise: Field) {
    const marked = readMark(yield* redis.command("GET", key))
    left = -1
    if (marked === undefined) return otherwise
    const { digest, offset } = marked
    const found = yield* messageAt(broker, queue, offset)
    if (found !== undefined && (found.offset > offset || found.digest === digest)) {
      const gone = found.offset - offset - 1
      if (gone > 0) {
        yield* Effect.logWarning(
          `Stream ${queue} no longer holds ${gone} messages behind offset ${offset}: they were never stored`
        )
      }
      left = offset
      return offset + 1
    }
    yield* Effect.logWarning(
      `Stream ${queue} is not the one that was stored up to offset ${offset}, or has lost its end: it is read from its beginning`
    )
    yield* redis.run(forget, [key], [textOf(marked)])
    return "first"
  })

  const move: StreamBookmark["move"] = (to) =>
    Effect.map(redis.run(moving, [key], [to.offset, textOf(to), left]), (outcome) => {
      if (outcome === "moved") left = to.offset
      return outcome
    })

  return { start, move }
}

interface Mark {
  readonly offset: number
  readonly digest: string
}

const textOf = ({ digest, offset }: Mark): string => `${offset} ${digest}`

const readMark = (reply: unknown): Mark | undefined => {
  const [, offset, digest = ""] = /^(\d{1,15}) (\w+)$/.exec(String(reply)) ?? []
  return offset === undefined ? undefined : { offset: Number(offset), digest }
}

/** For a message that must be there, or is not: what the broker says of a stream's length is old, or 0. */
const answersWithin = "3 seconds"

/** The message at an offset, or the first behind it where the stream's front is cut off. */
const messageAt = Effect.fnUntraced(function* (broker: Broker["Service"], queue: string, offset: number) {
  const { consume, ended } = yield* broker.channel({ prefetch: 1 })
  const first = Deferred.makeUnsafe<Mark>()
  yield* consume({
    queue,
    arguments: { "x-stream-offset": offset },
    onDelivery: ({ content, properties }) => {
      const at = offsetOf(properties)
      if (at !== undefined) Deferred.doneUnsafe(first, Exit.succeed({ offset: at, digest: digestOf(content) }))
    }
  })
  // behind the end of a stream a consumer waits, and is told nothing
  return yield* Effect.raceFirst(Deferred.await(first), ended).pipe(
    Effect.timeoutOption(answersWithin),
    Effect.map(Option.getOrUndefined)
  )
}, Effect.scoped)

/** Where a delivery stands in its stream. */
export const offsetOf = (properties: { readonly headers?: Readonly<Record<string, unknown>> }): number | undefined => {
  const offset = properties.headers?.["x-stream-offset"]
  return typeof offset === "number" ? offset : undefined
}

/** KEYS: bookmark. ARGV: offset, the mark itself, where it was left at least. */
const moving: Script<"moved" | "lost"> = {
  name: "move-stream-bookmark",
  lua: `
local at = tonumber(string.match(redis.call('GET', KEYS[1]) or '', '^%d+') or '-1')
if at < tonumber(ARGV[3]) then return 0 end
if at < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[2]) end
return 1`,
  step: (call, [key = ""], [offset = "", mark = "", left = ""]) => {
    const at = Number(/^\d+/.exec(String(call("GET", key) ?? ""))?.[0] ?? -1)
    if (at < Number(left)) return 0
    if (at < Number(offset)) call("SET", key, mark)
    return 1
  },
  decode: (reply) => (reply === 0 ? "lost" : "moved")
}

/** KEYS: bookmark. ARGV: the mark that it holds. Another replica may have begun anew since. */
const forget: Script<void> = {
  name: "forget-stream-bookmark",
  lua: `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 0`,
  step: (call, [key = ""], [mark]) => {
    if (call("GET", key) === mark) call("DEL", key)
    return 0
  },
  decode: () => {}
}

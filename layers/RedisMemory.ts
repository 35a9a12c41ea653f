import { Clock, Effect, Layer, type Scope } from "effect"
import { type Call, Redis, RedisError } from "../src/services/Redis.ts"
import * as SubscriberQueue from "../src/services/SubscriberQueue.ts"
import { DataDirectory } from "./data/DataDirectory.ts"
import type { DataRefused } from "./data/DataRefused.ts"
import * as RedisReply from "./ioredis/RedisReply.ts"
import * as Journal from "./journal/Journal.ts"
import { type Commands, type Server, wrongArity } from "./redis-memory/Arguments.ts"
import * as CommandLog from "./redis-memory/CommandLog.ts"
import { hashes } from "./redis-memory/Hashes.ts"
import { keys } from "./redis-memory/Keys.ts"
import { ErrorReply, Keyspace, refuse } from "./redis-memory/Keyspace.ts"
import { lists } from "./redis-memory/Lists.ts"
import { sets } from "./redis-memory/Sets.ts"
import { sortedSets } from "./redis-memory/SortedSets.ts"
import { streams } from "./redis-memory/Streams.ts"
import { strings } from "./redis-memory/Strings.ts"

export interface Options {
  /** Prefix of every key and channel. Default: none. */
  readonly prefix?: string | undefined
}

const commands: ReadonlyMap<string, Commands[string]> = new Map(
  Object.entries({ ...keys, ...strings, ...hashes, ...lists, ...sets, ...sortedSets, ...streams })
)

const callOf =
  (server: Server, log: () => CommandLog.CommandLog | undefined): Call =>
  (name, ...args) => {
    const upper = name.toUpperCase()
    const command = commands.get(upper)
    if (command === undefined) return refuse(`ERR unknown command '${name}': the in-memory Redis does not implement it`)
    const argumentCount = args.length + 1
    if (command.arity < 0 ? argumentCount < -command.arity : argumentCount !== command.arity) wrongArity(upper)
    const texts = args.map(String)
    const reply = command.run(server, texts, upper)
    log()?.onCommand(upper, texts, reply)
    return reply
  }

/**
 * A Redis inside the process, with only the commands that this program uses. Scripts run `Script.step` instead of Lua.
 * Keys expire by the `Clock` of the calling fiber. Other processes cannot see the data and channels.
 */
const make = Effect.fnUntraced(function* <E = never>(
  { prefix = "" }: Options,
  openLog: (keyspace: Keyspace, call: Call) => Effect.Effect<CommandLog.CommandLog | undefined, E, Scope.Scope>
): Effect.fn.Return<Redis["Service"], E, Scope.Scope> {
  const channels = SubscriberQueue.fanout(RedisReply.lagging)
  const keyspace = new Keyspace()
  let log: CommandLog.CommandLog | undefined
  const call = callOf({ keys: keyspace, publish: channels.publish }, () => log)
  keyspace.isReplaying = true
  log = yield* openLog(keyspace, call)
  keyspace.isReplaying = false
  const perform = <A>(operation: RedisError["operation"], work: () => A): Effect.Effect<A, RedisError> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      try {
        keyspace.advance(now)
        return Effect.succeed(log === undefined ? work() : log.run(now, work))
      } catch (error) {
        if (error instanceof ErrorReply) return Effect.fail(RedisReply.refused(operation, error.message))
        return error instanceof Journal.JournalFailure
          ? Effect.fail(new RedisError({ operation, retryable: true, cause: error }))
          : Effect.die(error)
      }
    })
  return Redis.of({
    key: RedisReply.keyOf(prefix),
    command: (name, ...args) => perform("command", () => call(name, ...args)),
    run: (script, keys, args) => perform("script", () => script.decode(script.step(call, keys, args.map(String)))),
    subscribe: (channel) => Effect.map(channels.subscribe(channel), (inbox) => inbox.messages),
    ping: Effect.asVoid(perform("command", () => call("PING")))
  })
})

/** The data is lost when the layer closes. */
export const layer = (options: Options = {}): Layer.Layer<Redis> =>
  Layer.effect(
    Redis,
    make(options, () => Effect.undefined)
  )

/** The data stays in the data directory. A reply follows when the kernel has what the command changed. */
export const layerOnDisk = (
  options: Options & Pick<Journal.Options<unknown>, "rewriteBytes"> = {}
): Layer.Layer<Redis, DataRefused, DataDirectory> =>
  Layer.effect(
    Redis,
    Effect.flatMap(DataDirectory, ({ folder }) =>
      make(options, (keyspace, call) =>
        Effect.map(
          Journal.make<CommandLog.LogRecord>({
            folder: folder("redis"),
            isRecord: CommandLog.isLogRecord,
            replay: CommandLog.replayInto(keyspace, (command) => call(...command)),
            capture: () => CommandLog.capture(keyspace),
            rewriteBytes: options.rewriteBytes
          }),
          (journal) => new CommandLog.CommandLog(journal)
        )
      )
    )
  )

import { Clock, Effect, Layer } from "effect"
import { type Call, Redis, type RedisError } from "../src/services/Redis.ts"
import * as SubscriberQueue from "../src/services/SubscriberQueue.ts"
import * as RedisReply from "./ioredis/RedisReply.ts"
import { type Commands, type Server, wrongArity } from "./redis-memory/Arguments.ts"
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
  (server: Server): Call =>
  (name, ...args) => {
    const upper = name.toUpperCase()
    const command = commands.get(upper)
    if (command === undefined) return refuse(`ERR unknown command '${name}': the in-memory Redis does not implement it`)
    const argumentCount = args.length + 1
    if (command.arity < 0 ? argumentCount < -command.arity : argumentCount !== command.arity) wrongArity(upper)
    return command.run(server, args.map(String), upper)
  }

/**
 * A Redis inside the process, with only the commands that this program uses. Scripts run `Script.step` instead of Lua.
 * Keys expire by the `Clock` of the calling fiber. Other processes cannot see the data and channels.
 */
const make = ({ prefix = "" }: Options): Redis["Service"] => {
  const channels = SubscriberQueue.fanout(RedisReply.lagging)
  const keyspace = new Keyspace()
  const call = callOf({ keys: keyspace, publish: channels.publish })
  const perform = <A>(operation: RedisError["operation"], work: () => A): Effect.Effect<A, RedisError> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      try {
        keyspace.advance(now)
        return Effect.succeed(work())
      } catch (error) {
        return error instanceof ErrorReply
          ? Effect.fail(RedisReply.refused(operation, error.message))
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
}

export const layer = (options: Options = {}): Layer.Layer<Redis> => Layer.sync(Redis, () => make(options))

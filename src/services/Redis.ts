import { Context, type Effect, Schema, type Scope, type Stream } from "effect"

/**
 * A Redis operation failed. `retryable`: Redis was unreachable, did not reply in time, or replied with a temporary
 * error such as `LOADING`, `BUSY` or `READONLY`. The same command may succeed later. A command without a reply may or
 * may not have been carried out. The driver never sends it twice. The message of an error reply is the text from Redis.
 * It begins with the kind of error.
 */
export class RedisError extends Schema.TaggedError<RedisError>()("RedisError", {
  operation: Schema.Literals(["command", "script", "subscribe"]),
  retryable: Schema.Boolean,
  cause: Schema.Defect()
}) {
  override get message() {
    return this.cause instanceof Error ? this.cause.message : String(this.cause)
  }
}

/** A RESP2 reply, with bulk strings as text. */
export type Reply = string | number | null | ReadonlyArray<Reply>

/** Runs one command, like `redis.call` in Lua. Numbers are written in decimal. */
export type Call = (command: string, ...args: ReadonlyArray<string | number>) => Reply

/**
 * One atomic state change, written as Lua for the server and as TypeScript for the in-memory variant. A property test
 * runs both with random inputs and compares them.
 */
export interface Script<A> {
  readonly name: string
  readonly lua: string
  readonly step: (call: Call, keys: ReadonlyArray<string>, args: ReadonlyArray<string>) => Reply
  /** Decodes the reply. Throws if the script cannot produce such a reply. */
  readonly decode: (reply: Reply) => A
}

/** Access to Redis 6 or newer: commands, scripts and subscriptions. */
export class Redis extends Context.Service<
  Redis,
  {
    /** Adds this deployment's prefix to the name of a key or channel. Use it for every name. */
    readonly key: (name: string) => string

    readonly command: (name: string, ...args: ReadonlyArray<string | number>) => Effect.Effect<Reply, RedisError>

    /** Runs `script` atomically in one round trip. */
    readonly run: <A>(
      script: Script<A>,
      keys: ReadonlyArray<string>,
      args: ReadonlyArray<string | number>
    ) => Effect.Effect<A, RedisError>

    /** Succeeds once the subscription is active. The stream fails when messages may have been lost. */
    readonly subscribe: (channel: string) => Effect.Effect<Stream.Stream<string, RedisError>, RedisError, Scope.Scope>

    readonly ping: Effect.Effect<void, RedisError>
  }
>()("svc/Redis") {}

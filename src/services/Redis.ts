import { Context, type Effect, Schema, type Scope, type Stream } from "effect"

/**
 * A Redis operation failed. `retryable`: the same command may succeed later, because Redis was unreachable, did not
 * reply in time, or replied with a temporary error (`LOADING`, `BUSY`, `READONLY`, …). Without a reply the command may
 * or may not have been carried out; the driver never sends it twice. An error reply keeps the server's text, which
 * begins with the kind of error.
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
 * One atomic state change, written twice: as Lua for the server, and as the same steps in TypeScript for the in-memory
 * variant. A property test runs both on the same random inputs to keep them equal.
 */
export interface Script<A> {
  readonly name: string
  readonly lua: string
  readonly step: (call: Call, keys: ReadonlyArray<string>, args: ReadonlyArray<string>) => Reply
  /** Decodes the reply. Throws (a defect) on a shape that the script cannot produce. */
  readonly decode: (reply: Reply) => A
}

/** The door to Redis 6 or newer: commands, scripts and subscriptions. */
export class Redis extends Context.Service<
  Redis,
  {
    /** Returns the full name of a key or channel of this deployment: the prefix and `name`. Use it for every key. */
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

import { Context, type Effect, Schema, type Scope, type Stream } from "effect"

/**
 * `retryable`: the same command may succeed later, because Redis was not reached, did not answer in time, or said "not
 * now" (`LOADING`, `BUSY`, `READONLY`, …). Without an answer it is unknown whether the command was carried out; it is
 * never sent a second time. An error that Redis answered keeps the server's text, whose first word is the kind.
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

/** What Redis answers: RESP2 values, with bulk strings as text. */
export type Reply = string | number | null | ReadonlyArray<Reply>

/** One command, as `redis.call` in Lua: numbers are written in decimal. */
export type Call = (command: string, ...args: ReadonlyArray<string | number>) => Reply

/**
 * One atomic state change, written twice: as Lua for the server, and as the same steps in TypeScript for the in-memory
 * variant. A property test runs both on the same random inputs, so neither can drift.
 */
export interface Script<A> {
  readonly name: string
  readonly lua: string
  readonly step: (call: Call, keys: ReadonlyArray<string>, args: ReadonlyArray<string>) => Reply
  /** Reads the reply; throws on a shape that the script cannot produce (a defect). */
  readonly decode: (reply: Reply) => A
}

/** Redis 6 or newer: commands, scripts and subscriptions. */
export class Redis extends Context.Service<
  Redis,
  {
    /** The full name of a key (or channel) of this deployment: prefix and name. Every key goes through it. */
    readonly key: (name: string) => string

    readonly command: (name: string, ...args: ReadonlyArray<string | number>) => Effect.Effect<Reply, RedisError>

    /** Runs `script` atomically, in one round trip. */
    readonly run: <A>(
      script: Script<A>,
      keys: ReadonlyArray<string>,
      args: ReadonlyArray<string | number>
    ) => Effect.Effect<A, RedisError>

    /** Ready to receive when the effect succeeds; the stream fails when messages may have been lost. */
    readonly subscribe: (channel: string) => Effect.Effect<Stream.Stream<string, RedisError>, RedisError, Scope.Scope>

    readonly ping: Effect.Effect<void, RedisError>
  }
>()("svc/Redis") {}

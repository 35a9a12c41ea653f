import { Duration, Effect, Redacted, type Scope } from "effect"
import { Redis as Ioredis, type RedisOptions, ReplyError } from "ioredis"
import type { RedisError } from "../../src/services/Redis.ts"
import * as RedisReply from "./RedisReply.ts"

export interface Endpoint {
  readonly url: Redacted.Redacted
  readonly deadline: Duration.Duration
}

type Operation = RedisError["operation"]

/**
 * Makes a connection that closes with the scope. The caller opens it. While it is closed, commands fail at once. No
 * command is queued, retried or sent twice. If Redis does not reply within the deadline, the connection closes. Replies
 * arrive in order, so one timer serves all commands.
 */
export const make = Effect.fnUntraced(function* (
  endpoint: Endpoint,
  operation: Operation,
  options: Pick<RedisOptions, "retryStrategy">
): Effect.fn.Return<Ioredis, RedisError, Scope.Scope> {
  const url = Redacted.value(endpoint.url)
  if (!URL.canParse(url)) return yield* RedisReply.unanswered(operation, "The address of Redis is not a valid URL")
  const deadlineMs = Duration.toMillis(endpoint.deadline)
  return yield* Effect.acquireRelease(
    Effect.try({
      try: () => {
        const client = new Ioredis(url, {
          protocol: 2,
          connectionName: "svc-runtime",
          disableClientInfo: true,
          lazyConnect: true,
          connectTimeout: connectTimeoutMs,
          socketTimeout: deadlineMs,
          disconnectTimeout: deadlineMs,
          enableOfflineQueue: false,
          maxRetriesPerRequest: 0,
          autoResendUnfulfilledCommands: false,
          autoResubscribe: false,
          reconnectOnError: (error) => error.message.startsWith("READONLY"),
          ...options
        })
        // Without a listener, ioredis would log errors to the console.
        return client.on("error", () => {})
      },
      catch: () => RedisReply.unanswered(operation, "The Redis URL is not valid")
    }),
    (client) => Effect.sync(() => client.disconnect())
  )
})

export const open = (client: Ioredis, operation: Operation): Effect.Effect<void, RedisError> =>
  Effect.callback<void, RedisError>((resume) => {
    let refusal: Error | undefined
    const rememberError = (error: Error) => {
      refusal = error
    }
    client.on("error", rememberError)
    client.connect((error) => {
      client.off("error", rememberError)
      resume(error ? Effect.fail(failure(operation, refusal ?? error)) : Effect.void)
    })
  }).pipe(
    Effect.timeoutOrElse({
      duration: connectTimeoutMs,
      orElse: () => Effect.fail(RedisReply.unanswered(operation, "Redis did not answer in time"))
    })
  )

const connectTimeoutMs = 5_000

export const failure = (operation: Operation, error: Error): RedisError =>
  isRefusal(error) ? RedisReply.refused(operation, error.message) : RedisReply.unanswered(operation, reason(error))

export const isRefusal = (error: Error): boolean => error instanceof ReplyError

const reason = (error: Error): string => {
  if (error.name === "MaxRetriesPerRequestError") return "The connection to Redis was lost"
  if (error.message.startsWith("Stream isn't writeable")) return "Not connected to Redis"
  // If all addresses of a host refuse the connection, Node's `AggregateError` has no message.
  return error instanceof AggregateError ? error.errors.map(String).join(", ") : error.message
}

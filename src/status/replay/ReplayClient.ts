import { randomUUID } from "node:crypto"
import { type Duration, Effect, Option, type Redacted, Schedule, Schema, Stream } from "effect"
import { HttpClient, type HttpClientError, HttpClientRequest } from "effect/http"
import * as QueuedLetters from "../dead-letters/QueuedLetters.ts"
import { Problem, ReplayJob, type Selection } from "./ReplayJobs.ts"

/** The process that serves the dead-letter routes. */
export interface Server {
  /** The URL of the process, including the path prefix of the routes. */
  readonly url: URL
  /** The token of that process (`SVC_STATUS_TOKEN`), if it requires one. */
  readonly token: Option.Option<Redacted.Redacted>
  /** The path of the replay jobs. Default: `/dlq/replays`. */
  readonly replaysPath?: string
  /** The path of the dead-letter queues. Default: `/dlq/queues`. */
  readonly queuesPath?: string
}

export interface Request {
  readonly selection: Selection
  readonly force: boolean
}

/** A request failed. `status` is the HTTP status, or 0 if there was no response. */
export class ReplayRequestFailed extends Schema.TaggedError<ReplayRequestFailed>()("ReplayRequestFailed", {
  status: Schema.Int,
  message: Schema.String
}) {}

const Detailed = Schema.Struct({ ...ReplayJob.fields, problems: Schema.Array(Problem) })
export type Detailed = typeof Detailed.Type

const responseTimeout: Duration.Input = "10 seconds"

/** Retries a request for a minute, so that a restart of the server does not make the request fail. */
const restartSchedule = Schedule.upTo(Schedule.spaced("500 millis"), { duration: "1 minute" })

/** Creates a job. All retries send the same idempotency key, so they create only one job. */
export const start = (server: Server, { force, selection }: Request) =>
  HttpClientRequest.post(urlOf(server)).pipe(
    HttpClientRequest.setHeader("Idempotency-Key", randomUUID()),
    HttpClientRequest.bodyJsonUnsafe({ ...selection, force }),
    (request) => send(server, request, ReplayJob),
    retryWhileUnavailable
  )

export const get = (server: Server, replayId: string) =>
  retryWhileUnavailable(send(server, HttpClientRequest.get(urlOf(server, replayId)), Detailed))

export const cancel = (server: Server, replayId: string) =>
  retryWhileUnavailable(send(server, HttpClientRequest.post(urlOf(server, replayId, "cancel")), ReplayJob))

/** Indexes the messages of a queue that have no record. Does not retry, because the server may still be indexing. */
export const index = (server: Server, queue: string) => postToQueue(server, queue, "index", QueuedLetters.Indexed)

/** Removes the replayed messages from a queue. Does not retry, because the server may still be removing messages. */
export const removeReplayed = (server: Server, queue: string) =>
  postToQueue(server, queue, "remove-replayed", QueuedLetters.Removed)

const postToQueue = <A, I>(server: Server, queue_name: string, action: string, schema: Schema.Codec<A, I>) =>
  HttpClientRequest.post(joinUrl(server, server.queuesPath ?? "/dlq/queues", action)).pipe(
    HttpClientRequest.bodyJsonUnsafe({ queue_name }),
    (request) => send(server, request, schema, "6 minutes")
  )

/** Emits the state of a job repeatedly. The last element is its final state. */
export const follow = (server: Server, replayId: string, every: Duration.Input = "200 millis") =>
  Stream.fromEffectSchedule(get(server, replayId), Schedule.spaced(every)).pipe(
    Stream.takeUntil(({ state }) => state !== "running")
  )

const urlOf = (server: Server, ...segments: ReadonlyArray<string>): string =>
  joinUrl(server, server.replaysPath ?? "/dlq/replays", ...segments)

const joinUrl = ({ url }: Server, path: string, ...segments: ReadonlyArray<string>): string =>
  url.origin + url.pathname.replace(/\/$/, "") + [path, ...segments.map(encodeURIComponent)].join("/")

const retryWhileUnavailable = <A, R>(request: Effect.Effect<A, ReplayRequestFailed, R>) =>
  Effect.retry(request, { schedule: restartSchedule, while: ({ status }) => status === 0 || status >= 500 })

const send = <A, I>(
  { token }: Server,
  request: HttpClientRequest.HttpClientRequest,
  schema: Schema.Codec<A, I>,
  within: Duration.Input = responseTimeout
): Effect.Effect<A, ReplayRequestFailed, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const authorized = Option.match(token, {
      onNone: () => request,
      onSome: (token) => HttpClientRequest.bearerToken(request, token)
    })
    const response = yield* client.execute(authorized)
    const body = yield* response.json
    if (response.status >= 300) return yield* failureOf(response.status, body)
    return yield* Schema.decodeUnknownEffect(schema)(body)
  }).pipe(
    Effect.timeout(within),
    Effect.catchTags({
      HttpClientError: (error) => unreachable(request, innermostMessage(error)),
      TimeoutError: () => unreachable(request, "no response in time"),
      SchemaError: ({ message }) =>
        new ReplayRequestFailed({
          status: 200,
          message: `The response has an unexpected body, so the server may not be a dead-letter service: ${message}`
        })
    })
  )

const unreachable = ({ url }: HttpClientRequest.HttpClientRequest, why: string) =>
  new ReplayRequestFailed({ status: 0, message: `${url} cannot be reached: ${why}` })

/** Returns the message of the innermost cause, such as `connect ECONNREFUSED 127.0.0.1:8082`. */
const innermostMessage = (error: HttpClientError.HttpClientError): string => {
  const { reason } = error
  let cause: unknown = "cause" in reason ? reason.cause : undefined
  let why = error.message
  for (let depth = 0; depth < 10 && cause instanceof Error; depth++) {
    // An `AggregateError` has one error for each address of the host name. The errors usually have the same cause.
    const [first]: ReadonlyArray<unknown> = cause instanceof AggregateError ? cause.errors : []
    if (cause.message !== "") why = cause.message
    cause = first ?? cause.cause
  }
  return why
}

const Refusal = Schema.Struct({ detail: Schema.Unknown })

const failureOf = (status: number, body: unknown): ReplayRequestFailed => {
  const read = Schema.decodeUnknownOption(Refusal)(body)
  const detail = Option.match(read, { onNone: () => body, onSome: ({ detail }) => detail })
  return new ReplayRequestFailed({
    status,
    message: `${status}: ${typeof detail === "string" ? detail : JSON.stringify(detail)}`
  })
}

import { randomUUID } from "node:crypto"
import { type Duration, Effect, Option, type Redacted, Schedule, Schema, Stream } from "effect"
import { HttpClient, type HttpClientError, HttpClientRequest } from "effect/http"
import * as QueuedLetters from "../dead-letters/QueuedLetters.ts"
import * as Problems from "./ReplayJobs.ts"
import { ReplayJob, type Selection } from "./ReplayJobs.ts"

/** A process that serves dead letters. */
export interface Server {
  /** Of its listener, with the prefix that the routes are mounted under. */
  readonly url: URL
  /** `SVC_STATUS_TOKEN`, where the process demands one. */
  readonly token: Option.Option<Redacted.Redacted>
  /** Default: `/dlq/replays`. */
  readonly replaysPath?: string
  /** Default: `/dlq/queues`. */
  readonly queuesPath?: string
}

export interface Request {
  readonly selection: Selection
  readonly force: boolean
}

/** `status`: 0 where there was no answer. */
export class ReplayRequestFailed extends Schema.TaggedError<ReplayRequestFailed>()("ReplayRequestFailed", {
  status: Schema.Int,
  message: Schema.String
}) {}

const Detailed = Schema.Struct({ ...ReplayJob.fields, problems: Schema.Array(Problems.Problem) })
export type Detailed = typeof Detailed.Type

/** An answer that is late is none. */
const responseTimeout: Duration.Input = "10 seconds"

/** A server that restarts is waited for so long. */
const restartSchedule = Schedule.upTo(Schedule.spaced("500 millis"), { duration: "1 minute" })

/** Begins a job. Sent again until it is answered: the same request is one job. */
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

/** Gives each message of a dead-letter queue a record that has none. Not sent again: the server may be at work still. */
export const index = (server: Server, queue: string) => postToQueue(server, queue, "index", QueuedLetters.Indexed)

/** Takes out of a dead-letter queue what was replayed. */
export const removeReplayed = (server: Server, queue: string) =>
  postToQueue(server, queue, "remove-replayed", QueuedLetters.Removed)

const postToQueue = <A, I>(server: Server, queue_name: string, action: string, schema: Schema.Codec<A, I>) =>
  HttpClientRequest.post(joinUrl(server, server.queuesPath ?? "/dlq/queues", action)).pipe(
    HttpClientRequest.bodyJsonUnsafe({ queue_name }),
    (request) => send(server, request, schema, "6 minutes")
  )

/** A job as it goes on, to its end, which is the last element. */
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
      TimeoutError: () => unreachable(request, "no answer in time"),
      SchemaError: ({ message }) =>
        new ReplayRequestFailed({ status: 200, message: `What answered is no such server: ${message}` })
    })
  )

const unreachable = ({ url }: HttpClientRequest.HttpClientRequest, why: string) =>
  new ReplayRequestFailed({ status: 0, message: `${url} cannot be reached: ${why}` })

/** What the network said, such as `connect ECONNREFUSED 127.0.0.1:8082`: it is the last of a chain of causes. */
const innermostMessage = (error: HttpClientError.HttpClientError): string => {
  const { reason } = error
  let cause: unknown = "cause" in reason ? reason.cause : undefined
  let why = error.message
  for (let depth = 0; depth < 10 && cause instanceof Error; depth++) {
    // one for each address of a name: they fail alike
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

import { Console, Effect, Option, type Redacted, Stream } from "effect"
import { FetchHttpClient, type HttpClient } from "effect/http"
import type * as QueuedLetters from "../../src/status/dead-letters/QueuedLetters.ts"
import * as ReplayClient from "../../src/status/replay/ReplayClient.ts"
import { CommandFailed } from "./DatabaseCommands.ts"

export interface ReplayOptions {
  readonly url: Option.Option<URL>
  readonly token: Option.Option<Redacted.Redacted>
  /** If a job id is given, the command follows this job and ignores `ids` and `filter`. */
  readonly job: Option.Option<string>
  readonly ids: ReadonlyArray<string>
  readonly filter: NonNullable<Extract<ReplayClient.Request["selection"], { filter: unknown }>["filter"]>
  readonly force: boolean
}

/** On a terminal, each progress line replaces the last one. Elsewhere, the lines are appended. */
export interface ProgressOutput {
  readonly terminal: boolean
  readonly columns: number
  readonly write: (text: string) => void
}

/**
 * Starts a replay job through the API of a running process and prints its progress. Fails if the job was cancelled, or
 * if a record failed or has an unknown outcome. The job continues if this command stops.
 */
export const replay = Effect.fnUntraced(
  function* (options: ReplayOptions, screen: ProgressOutput) {
    const server = yield* serverOf(options)
    const id = Option.isSome(options.job) ? options.job.value : (yield* startJob(server, options)).replay_id
    yield* Console.log(`Following the replay job ${id}. The server continues it even if this command stops.`)
    const show = progressPrinter(screen)
    const last = yield* ReplayClient.follow(server, id).pipe(
      Stream.tap((job) => Effect.sync(() => show(job))),
      Stream.runLast
    )
    if (screen.terminal) screen.write("\n")
    return yield* Option.match(last, {
      onNone: () =>
        new CommandFailed({
          message: `The server sent no state of the replay job ${id}. Run the command again with --job ${id}.`
        }),
      onSome: reportResult
    })
  },
  Effect.catchTag("ReplayRequestFailed", ({ message }) => Effect.fail(new CommandFailed({ message }))),
  Effect.provide(FetchHttpClient.layer)
)

export interface QueueOptions extends Pick<ReplayOptions, "url" | "token"> {
  readonly queue: string
}

/** Creates missing records for messages of a dead-letter queue. Running it twice is harmless. */
export const index = (options: QueueOptions) =>
  runQueueWalk(options, ReplayClient.index, ({ indexed, known }) => `${indexed} indexed, ${known} already known`)

export const removeReplayed = (options: QueueOptions) =>
  runQueueWalk(
    options,
    ReplayClient.removeReplayed,
    ({ kept, removed }) => `${removed} removed as replayed; ${kept} kept`
  )

const runQueueWalk = <A extends Pick<QueuedLetters.Indexed, "queue_name" | "messages" | "foreign" | "truncated">>(
  options: QueueOptions,
  walk: (
    server: ReplayClient.Server,
    queue: string
  ) => Effect.Effect<A, ReplayClient.ReplayRequestFailed, HttpClient.HttpClient>,
  countsOf: (walked: A) => string
) =>
  Effect.flatMap(serverOf(options), (server) => walk(server, options.queue)).pipe(
    Effect.tap((done) =>
      Console.log(
        `${done.queue_name}: ${done.messages} messages examined; ${countsOf(done)}${
          done.foreign > 0 ? `; ${done.foreign} of another program, left unchanged` : ""
        }.`
      )
    ),
    Effect.flatMap(({ truncated }) =>
      truncated
        ? Effect.fail(
            new CommandFailed({
              message:
                "Not all messages were examined: one run has a limit, or another consumer took some. Run the command again."
            })
          )
        : Effect.void
    ),
    Effect.catchTag("ReplayRequestFailed", ({ message }) => Effect.fail(new CommandFailed({ message }))),
    Effect.provide(FetchHttpClient.layer)
  )

const serverOf = ({
  token,
  url
}: Pick<ReplayOptions, "token" | "url">): Effect.Effect<ReplayClient.Server, CommandFailed> =>
  Option.match(url, {
    onNone: () =>
      new CommandFailed({
        message:
          "Set --url or SVC_STATUS_URL to a process that serves dead letters, such as --url http://127.0.0.1:8082."
      }),
    onSome: (url) => Effect.succeed({ url, token })
  })

const startJob = Effect.fnUntraced(function* (server: ReplayClient.Server, { filter, force, ids }: ReplayOptions) {
  const filtered = Object.keys(filter).length > 0
  if (filtered === ids.length > 0) {
    return yield* new CommandFailed({
      message: "Select what to replay: either ids with --id, or a filter such as --queue or --reason."
    })
  }
  return yield* ReplayClient.start(server, { selection: filtered ? { filter } : { ids }, force })
})

const progressPrinter = ({ columns, terminal, write }: ProgressOutput) => {
  let lastText = ""
  return (job: ReplayClient.Detailed): void => {
    const counts = countsOf(job)
    const text = terminal ? progressBar(job, counts, columns) : `${doneCount(job)}/${job.total} done: ${counts}`
    if (text !== lastText) write(terminal ? `\r${text}\x1b[K` : `${text}\n`)
    lastText = text
  }
}

const doneCount = ({ remaining, total }: ReplayClient.Detailed): number => total - remaining

const countsOf = ({ failed, replayed, skipped, unknown, waiting }: ReplayClient.Detailed): string =>
  [
    `${replayed} replayed`,
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(unknown > 0 ? [`${unknown} unknown`] : []),
    ...(waiting === null ? [] : [`waiting: ${waiting}`])
  ].join(", ")

/** Cuts the line to the width of the terminal, because a wider line would wrap. */
const progressBar = (job: ReplayClient.Detailed, counts: string, columns: number): string => {
  const part = job.total === 0 ? 1 : doneCount(job) / job.total
  const width = Math.max(10, Math.min(40, columns - 50))
  const filled = Math.floor(part * width)
  const line = `[${"█".repeat(filled)}${"░".repeat(width - filled)}] ${Math.floor(part * 100)}% ${doneCount(job)}/${job.total}  ${counts}`
  return line.slice(0, Math.max(20, columns - 1))
}

const maxListedProblems = 20

const reportResult = Effect.fnUntraced(function* (job: ReplayClient.Detailed) {
  const unresolved = job.problems.filter(({ outcome }) => outcome !== "skipped")
  for (const { detail, dlq_id, outcome } of unresolved.slice(0, maxListedProblems)) {
    yield* Console.log(`${outcome} ${dlq_id}: ${detail}`)
  }
  if (unresolved.length > maxListedProblems)
    yield* Console.log(`… and ${unresolved.length - maxListedProblems} more in ${job.replay_id}`)
  if (job.state === "cancelled") {
    return yield* new CommandFailed({
      message: `The replay job was cancelled: ${job.remaining} of ${job.total} records were not processed.`
    })
  }
  if (job.failed + job.unknown > 0) {
    return yield* new CommandFailed({
      message: `Of ${job.total} records, ${job.failed} failed and ${job.unknown} have an unknown outcome. The lines above name them.`
    })
  }
  yield* Console.log(
    job.total === 0 ? "No record matched; nothing was replayed." : `Done: ${countsOf(job)} of ${job.total}.`
  )
  if (job.truncated) yield* Console.log("More records match than one job can take: run the command again.")
})

import { Config, Effect, Record, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { withModule } from "./CommandEnvironment.ts"

const optionalFlag = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.optional, Flag.withDescription(description))

const statusUrl = Flag.String("url").pipe(
  Flag.withFallbackConfig(Config.String("SVC_STATUS_URL")),
  Flag.withSchema(Schema.URLFromString),
  Flag.optional,
  Flag.withDescription("The URL of a process that serves dead letters; defaults to SVC_STATUS_URL")
)

const statusToken = Config.option(Config.Redacted("SVC_STATUS_TOKEN"))

export const replay = Command.make(
  "replay",
  {
    url: statusUrl,
    job: optionalFlag("job", "Follow this existing job instead of starting one"),
    ids: Flag.String("id").pipe(Flag.atLeast(0), Flag.withDescription("A dlq_id; may be repeated")),
    queue_name: optionalFlag("queue", "The dead-letter queue"),
    source_queue_name: optionalFlag("source-queue", "The queue that dead-lettered the messages"),
    reason: optionalFlag("reason", "The failure reason, such as handler_error"),
    exception_type: optionalFlag("exception-type", "The exception type, such as RangeError"),
    task_id: optionalFlag("task", "The task id"),
    state: Flag.Literals("state", ["dead_lettered", "replay_unknown", "replayed"]).pipe(
      Flag.optional,
      Flag.withDescription("The state of the records; defaults to dead_lettered")
    ),
    force: Flag.Boolean("force").pipe(
      Flag.withDefault(false),
      Flag.withDescription(
        "Also replay messages that were or may have been replayed before; their work may be done twice"
      )
    )
  },
  Effect.fnUntraced(function* ({ force, ids, job, url, ...filter }) {
    const token = yield* statusToken
    const { columns, isTTY } = process.stdout
    const screen = {
      terminal: isTTY === true,
      columns: columns ?? 80,
      write: (text: string) => process.stdout.write(text)
    }
    yield* withModule(
      () => import("./ReplayDeadLetters.ts"),
      ({ replay }) => replay({ url, token, job, ids, filter: Record.getSomes(filter), force }, screen)
    )
  })
).pipe(
  Command.withDescription("Replay dead letters and show the progress; SVC_STATUS_TOKEN authenticates to the process")
)

const queueFlags = {
  url: statusUrl,
  queue: Flag.String("queue").pipe(Flag.withDescription("The dead-letter queue"))
}

export const deadLetters = Command.make("dead-letters").pipe(
  Command.withDescription("Maintain the dead-letter queues of the broker through the API of a running process"),
  Command.withSubcommands([
    Command.make("index", queueFlags, (args) =>
      Effect.flatMap(statusToken, (token) =>
        withModule(
          () => import("./ReplayDeadLetters.ts"),
          ({ index }) => index({ ...args, token })
        )
      )
    ).pipe(
      Command.withDescription(
        "Create missing records for queued messages, for example after Redis lost data; idempotent"
      )
    ),
    Command.make("remove-replayed", queueFlags, (args) =>
      Effect.flatMap(statusToken, (token) =>
        withModule(
          () => import("./ReplayDeadLetters.ts"),
          ({ removeReplayed }) => removeReplayed({ ...args, token })
        )
      )
    ).pipe(Command.withDescription("Remove replayed messages from their queue and keep their records"))
  ])
)

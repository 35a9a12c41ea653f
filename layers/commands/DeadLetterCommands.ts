import { Config, Effect, Record, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { withModule } from "./CommandEnvironment.ts"

const optionalFlag = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.optional, Flag.withDescription(description))

const statusUrl = Flag.String("url").pipe(
  Flag.withFallbackConfig(Config.String("SVC_STATUS_URL")),
  Flag.withSchema(Schema.URLFromString),
  Flag.optional,
  Flag.withDescription("Of a running process that serves dead letters; without this flag SVC_STATUS_URL")
)

const statusToken = Config.option(Config.Redacted("SVC_STATUS_TOKEN"))

export const replay = Command.make(
  "replay",
  {
    url: statusUrl,
    job: optionalFlag("job", "Only shows a job that was begun before"),
    ids: Flag.String("id").pipe(Flag.atLeast(0), Flag.withDescription("A dlq_id; may be given many times")),
    queue_name: optionalFlag("queue", "The dead-letter queue"),
    source_queue_name: optionalFlag("source-queue", "The queue that the messages came from"),
    reason: optionalFlag("reason", "Such as handler_error"),
    exception_type: optionalFlag("exception-type", "Such as RangeError"),
    task_id: optionalFlag("task", "One task"),
    state: Flag.Literals("state", ["dead_lettered", "replay_unknown", "replayed"]).pipe(
      Flag.optional,
      Flag.withDescription("Without this flag those that are open: dead_lettered")
    ),
    force: Flag.Boolean("force").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Also what was replayed before, or may have been, and so may be done twice")
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
  Command.withDescription("Replays dead letters, and shows how far it is; SVC_STATUS_TOKEN is the process's token")
)

const queueFlags = {
  url: statusUrl,
  queue: Flag.String("queue").pipe(Flag.withDescription("The dead-letter queue"))
}

export const deadLetters = Command.make("dead-letters").pipe(
  Command.withDescription("The messages of dead-letter queues on the broker, by the API of a running process"),
  Command.withSubcommands([
    Command.make("index", queueFlags, (given) =>
      Effect.flatMap(statusToken, (token) =>
        withModule(
          () => import("./ReplayDeadLetters.ts"),
          ({ index }) => index({ ...given, token })
        )
      )
    ).pipe(Command.withDescription("Gives records to those that have none, as after a loss of Redis; twice is once")),
    Command.make("remove-replayed", queueFlags, (given) =>
      Effect.flatMap(statusToken, (token) =>
        withModule(
          () => import("./ReplayDeadLetters.ts"),
          ({ removeReplayed }) => removeReplayed({ ...given, token })
        )
      )
    ).pipe(Command.withDescription("Takes those out of their queue that were replayed; their records stay"))
  ])
)

import "./node-version.mjs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Config, Console, Effect, Layer, Record, Result, Schema } from "effect"
import { Argument, CliError, Command, Flag } from "effect/cli"
import * as AuditCommands from "../layers/commands/AuditCommands.ts"
import * as Commands from "../layers/commands/Commands.ts"
import * as ConfigurationCommands from "../layers/commands/ConfigurationCommands.ts"
import * as ReplayCommands from "../layers/commands/ReplayCommands.ts"
import * as Doors from "../layers/Doors.ts"
import * as Environment from "../layers/Environment.ts"
import * as Observability from "../layers/Observability.ts"
import * as Roles from "../layers/roles/Roles.ts"
import * as Start from "../layers/Start.ts"
import * as Teardown from "../layers/Teardown.ts"
import { version } from "../layers/telemetry/Version.ts"

const refused = (message: ReadonlyArray<string>) => new Start.StartRefused({ message: message.join("\n") })

const environment = Effect.suspend(() =>
  Effect.mapError(Effect.fromResult(Environment.read(process.env)), (mistakes) =>
    refused([Environment.describe(mistakes)])
  )
)

const run = Effect.fnUntraced(function* (wish: Doors.Wish) {
  const settings = yield* Effect.mapError(environment, ({ message }) =>
    refused([message, ...Doors.problems(wish, Doors.urlsOf(process.env))])
  )
  const problems = Doors.problems(wish, settings)
  if (problems.length > 0) return yield* refused(problems)
  const doors = Doors.choose(wish, settings)
  yield* Start.banner(doors, settings)
  yield* Layer.launch(Roles.layer(doors, settings).pipe(Layer.provide(Observability.layer(settings, wish.role))))
})

const variant = <const Variants extends ReadonlyArray<string>>(door: string, variants: Variants, variable: string) =>
  Flag.Literals(door, variants).pipe(
    Flag.optional,
    Flag.withDescription(`What the ${door} door opens to; without this flag ${variable} decides`)
  )

const command = Command.make(
  "svc-runtime",
  {
    role: Argument.Literals("role", Doors.roles).pipe(
      Argument.withDefault("all"),
      Argument.withDescription(
        "gateway: the proxy listener; control: the operator API; all: both in one process, and the example's tasks where no real server is used; messaging, with --example: workers of the example's tasks; status: their statuses, event streams and dead letters; graph: their execution graphs"
      )
    ),
    database: variant("database", Doors.databaseVariants, "DATABASE_URL"),
    redis: variant("redis", Doors.redisVariants, "REDIS_URL"),
    broker: variant("broker", Doors.brokerVariants, "RABBITMQ_URL"),
    upstream: variant("upstream", Doors.upstreamVariants, "UPSTREAM_BASE_URL, or that of a family,"),
    example: Flag.Boolean("example").pipe(
      Flag.withDefault(false),
      Flag.withDescription(
        "Works on the example's tasks, also on real servers; the role all does so by itself where it uses none"
      )
    )
  },
  run
).pipe(
  Command.withDescription(
    "A governed gateway in front of a model proxy, and tasks that are followed, repaired and drawn"
  )
)

const expect = Flag.String("expect").pipe(
  Flag.withSchema(Commands.Anchor),
  Flag.optional,
  Flag.withDescription("An event that an earlier run printed, <sequence>:<hash>: fails where the log no longer has it")
)

const archiveFile = Argument.String("file").pipe(
  Argument.withDescription("One event a line, as JSON; archiving makes the file, and overwrites none")
)

const before = Flag.String("before").pipe(
  Flag.withSchema(AuditCommands.Day),
  Flag.withDescription("A date: what is older than its beginning in UTC is archived")
)

const audit = Command.make("audit").pipe(
  Command.withDescription("The log of what operators changed"),
  Command.withSubcommands([
    Command.make("verify", { expect }, (flags) =>
      Effect.flatMap(environment, (settings) => Commands.verifyAudit(settings, flags.expect))
    ).pipe(Command.withDescription("Whether the log in DATABASE_URL is what was written; prints its head")),
    Command.make("archive", { file: archiveFile, before }, (given) =>
      Effect.flatMap(environment, (settings) => AuditCommands.archive(settings, given.file, given.before))
    ).pipe(Command.withDescription("Moves the beginning of the log in DATABASE_URL into a file; an event says so")),
    Command.make("verify-archive", { file: archiveFile }, ({ file }) => AuditCommands.verifyArchive(file)).pipe(
      Command.withDescription("Whether an archive holds what was written")
    )
  ])
)

const force = Flag.Boolean("force").pipe(
  Flag.withDefault(false),
  Flag.withDescription("Also while processes are connected that do not have the key, and could not read what it sealed")
)

const secrets = Command.make("secrets").pipe(
  Command.withDescription("Stored credentials"),
  Command.withSubcommands([
    Command.make("rotate", { force }, (flags) =>
      Effect.flatMap(environment, (settings) => Commands.rotateSecrets(settings, flags.force))
    ).pipe(
      Command.withDescription(
        "Seals every stored credential under GATEWAY_ENCRYPTION_KEY; GATEWAY_PREVIOUS_ENCRYPTION_KEY opens them until then"
      )
    )
  ])
)

const operatorToken = Command.make("operator-token").pipe(
  Command.withDescription("Tokens for the control API"),
  Command.withSubcommands([
    Command.make(
      "create",
      {
        name: Flag.String("name").pipe(
          Flag.withSchema(Commands.TokenName),
          Flag.withDefault("command line"),
          Flag.withDescription("What the list of tokens calls it")
        )
      },
      ({ name }) => Effect.flatMap(environment, (settings) => Commands.createOperatorToken(settings, name))
    ).pipe(Command.withDescription("Makes a token in DATABASE_URL that may do everything, and prints it, once"))
  ])
)

const file = Argument.String("file").pipe(Argument.withDescription("A document as `configuration export` prints it"))

const base = Flag.String("base").pipe(
  Flag.optional,
  Flag.withDescription("What `configuration plan` printed: refused where the configuration has changed since")
)

const configuration = Command.make("configuration").pipe(
  Command.withDescription("What operators decided, as one document without secrets"),
  Command.withSubcommands([
    Command.make("export", {}, () => Effect.flatMap(environment, ConfigurationCommands.print)).pipe(
      Command.withDescription("Prints the configuration in DATABASE_URL")
    ),
    Command.make("plan", { file }, (given) =>
      Effect.flatMap(environment, (settings) => ConfigurationCommands.plan(settings, given.file))
    ).pipe(Command.withDescription("Says what a document would change, and what each key would lose")),
    Command.make("apply", { file, base }, (given) =>
      Effect.flatMap(environment, (settings) => ConfigurationCommands.apply(settings, given.file, given.base))
    ).pipe(Command.withDescription("Makes the configuration as a document says, as a whole or not at all"))
  ])
)

const named = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.optional, Flag.withDescription(description))

const statusUrl = Flag.String("url").pipe(
  Flag.withFallbackConfig(Config.String("SVC_STATUS_URL")),
  Flag.withSchema(Schema.URLFromString),
  Flag.optional,
  Flag.withDescription("Of a running process that serves dead letters; without this flag SVC_STATUS_URL")
)

const statusToken = Config.option(Config.Redacted("SVC_STATUS_TOKEN"))

const replay = Command.make(
  "replay",
  {
    url: statusUrl,
    job: named("job", "Only shows a job that was begun before"),
    ids: Flag.String("id").pipe(Flag.atLeast(0), Flag.withDescription("A dlq_id; may be given many times")),
    queue_name: named("queue", "The dead-letter queue"),
    source_queue_name: named("source-queue", "The queue that the messages came from"),
    reason: named("reason", "Such as handler_error"),
    exception_type: named("exception-type", "Such as RangeError"),
    task_id: named("task", "One task"),
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
    yield* ReplayCommands.replay(
      { url, token, job, ids, filter: Record.getSomes(filter), force },
      { terminal: isTTY === true, columns: columns ?? 80, write: (text) => process.stdout.write(text) }
    )
  })
).pipe(
  Command.withDescription("Replays dead letters, and shows how far it is; SVC_STATUS_TOKEN is the process's token")
)

const letters = {
  url: statusUrl,
  queue: Flag.String("queue").pipe(Flag.withDescription("The dead-letter queue"))
}

const deadLetters = Command.make("dead-letters").pipe(
  Command.withDescription("The messages of dead-letter queues on the broker, by the API of a running process"),
  Command.withSubcommands([
    Command.make("index", letters, (given) =>
      Effect.flatMap(statusToken, (token) => ReplayCommands.index({ ...given, token }))
    ).pipe(Command.withDescription("Gives records to those that have none, as after a loss of Redis; twice is once")),
    Command.make("remove-replayed", letters, (given) =>
      Effect.flatMap(statusToken, (token) => ReplayCommands.removeReplayed({ ...given, token }))
    ).pipe(Command.withDescription("Takes those out of their queue that were replayed; their records stay"))
  ])
)

/** What ended the program, in words; a mistake on the command line has been shown with the help already. */
const complain = (cause: Cause.Cause<unknown>) => {
  const error = Cause.findError(cause)
  if (Result.isFailure(error)) return Console.error(Cause.pretty(cause))
  return CliError.isCliError(error.success) ? Effect.void : Console.error(Start.describe(error.success))
}

Command.run(Command.withSubcommands(command, [audit, secrets, operatorToken, configuration, replay, deadLetters]), {
  version
}).pipe(
  Effect.provide(NodeServices.layer),
  Effect.tapCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : complain(cause))),
  NodeRuntime.runMain({ teardown: Teardown.drained, disableErrorReporting: true })
)

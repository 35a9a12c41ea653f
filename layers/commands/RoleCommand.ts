import { Effect, FiberSet, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import {
  brokerVariants,
  type CliOptions,
  databaseVariants,
  problemsOf,
  redisVariants,
  roles,
  upstreamVariants,
  urlsInEnvironment
} from "../DoorOptions.ts"
import type { Doors } from "../Doors.ts"
import type { Settings } from "../Environment.ts"
import { Workers } from "../environment/VariableKinds.ts"
import * as Startup from "../Startup.ts"
import * as WorkerIdentity from "../workers/WorkerIdentity.ts"
import * as WorkerLimits from "../workers/WorkerLimits.ts"
import { readSettings, startRefused } from "./CommandEnvironment.ts"

const runRole = Effect.fnUntraced(function* (options: CliOptions) {
  const settings = yield* Effect.mapError(readSettings, ({ message }) =>
    startRefused([message, ...problemsOf(options, urlsInEnvironment(process.env))])
  )
  const mistakes = problemsOf(options, settings)
  if (mistakes.length > 0) return yield* startRefused(mistakes)
  const { select } = yield* Effect.promise(() => import("../Doors.ts"))
  const worker = WorkerIdentity.ofProcess(process.env)
  if (Option.isSome(worker)) {
    const ownSettings = WorkerLimits.settingsOf(settings, worker.value)
    const { run } = yield* Effect.promise(() => import("../workers/WorkerRole.ts"))
    return yield* run(select(options, ownSettings), ownSettings, worker.value)
  }
  const doors = select(options, settings)
  if (doors.workers > 1) return yield* runSupervisor(doors, settings)
  const isOnlyWorker =
    options.role === "gateway" && Option.isSome(Option.orElse(options.workers, () => settings.workers))
  return yield* runProcess(doors, settings, isOnlyWorker)
})

const runProcess = Effect.fnUntraced(function* (doors: Doors, settings: Settings, isOnlyWorker: boolean) {
  const [Observability, Roles] = yield* Effect.promise(() =>
    Promise.all([import("../Observability.ts"), import("../roles/Roles.ts")])
  )
  const program = yield* Roles.load(doors, settings)
  yield* Startup.banner(doors, settings)
  yield* Layer.launch(
    Layer.merge(program, isOnlyWorker ? hangupsIgnored : Layer.empty).pipe(
      Layer.provide(Observability.layer(settings, { role: doors.role }))
    )
  )
})

/**
 * An operator who has set a number of workers restarts them with SIGHUP, also where `auto` means one. Without a
 * supervisor, Node would end the process at once.
 */
const hangupsIgnored = Layer.effectDiscard(
  Effect.gen(function* () {
    const run = yield* FiberSet.makeRuntime<never>()
    const onHangup = () =>
      run(Effect.logWarning("SIGHUP is ignored, because a single worker cannot restart without failed requests"))
    yield* Effect.acquireRelease(
      Effect.sync(() => process.on("SIGHUP", onHangup)),
      () => Effect.sync(() => process.off("SIGHUP", onHangup))
    )
  })
)

const runSupervisor = Effect.fnUntraced(function* (doors: Doors, settings: Settings) {
  const { run } = yield* Effect.promise(() => import("../workers/SupervisorRole.ts"))
  yield* Startup.banner(doors, settings)
  return yield* run(doors, settings)
})

const variant = <const Variants extends ReadonlyArray<string>>(name: string, variants: Variants, variable: string) =>
  Flag.Literals(name.toLowerCase(), variants).pipe(
    Flag.optional,
    Flag.withDescription(`The variant of ${name}; without this flag, ${variable} decides`)
  )

export const role = Command.make(
  "svc-runtime",
  {
    role: Argument.Literals("role", roles).pipe(
      Argument.withDefault("all"),
      Argument.withDescription(
        "gateway: the proxy listener; control: the operator API; all: both in one process, and tasks if they are named; messaging: the workers of your tasks; status: the statuses, event streams and dead letters of these tasks; graph: the execution graphs of these tasks. The last three roles need --tasks or --example"
      )
    ),
    database: variant("Database", databaseVariants, "DATABASE_URL"),
    redis: variant("Redis", redisVariants, "REDIS_URL"),
    broker: variant("Broker", brokerVariants, "RABBITMQ_URL"),
    upstream: variant("Upstream", upstreamVariants, "UPSTREAM_BASE_URL (or the variable of an API family)"),
    tasks: Flag.String("tasks").pipe(
      Flag.optional,
      Flag.withMetavar("FILE"),
      Flag.withDescription(
        'The module of your tasks, such as ./tasks.ts: it exports what defineTasks returns as "default" or "tasks"'
      )
    ),
    data: Flag.String("data").pipe(
      Flag.optional,
      Flag.withDescription(
        "A directory in which the database, Redis and broker inside the process keep their data; without this flag, SVC_DATA_DIR decides; without both, their data is lost at exit"
      )
    ),
    example: Flag.Boolean("example").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Run the example's tasks, which read and summarise books")
    ),
    workers: Flag.String("workers").pipe(
      Flag.withSchema(Workers),
      Flag.optional,
      Flag.withMetavar("N"),
      Flag.withDescription(
        "The number of processes that share the proxy listener of the role gateway, or auto for one per processor; without this flag, GATEWAY_WORKERS decides; default 1"
      )
    )
  },
  runRole
).pipe(
  Command.withDescription(
    "A governed gateway in front of a model proxy, and task messaging with statuses, replay and execution graphs"
  )
)

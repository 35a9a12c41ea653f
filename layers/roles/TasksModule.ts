import { existsSync } from "node:fs"
import { relative, resolve } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { inspect } from "node:util"
import { Config, Console, Data, Effect, Layer, Option, Predicate } from "effect"
import { SettingsError, TopologyError } from "../../src/messaging/envelope/Errors.ts"
import { BrokerError } from "../../src/services/Broker.ts"
import { RedisError } from "../../src/services/Redis.ts"
import { isTasks, type Tasks } from "../../src/tasks/Tasks.ts"
import * as Startup from "../Startup.ts"

/** The workers of a module do not start, for a reason that may pass, such as a port that another process uses. */
export class WorkersFailed extends Data.TaggedError("WorkersFailed")<{ readonly message: string }> {}

/**
 * Loads the tasks that a module exports as `default` or `tasks`. The path may be relative to the working directory. An
 * error of the workers at their start names the module.
 */
export const load = Effect.fnUntraced(function* (path: string): Effect.fn.Return<Tasks, Startup.StartRefused> {
  const file = resolve(path)
  if (!existsSync(file)) return yield* refused(path, `does not exist: there is no file ${file}`)
  const module = yield* Effect.tryPromise({
    try: (): Promise<unknown> => import(pathToFileURL(file).href),
    catch: (cause) => refused(path, `cannot be loaded: ${describe(cause, file)}`)
  }).pipe(Effect.raceFirst(noticeOfSlowLoad(path)))
  const exported: Readonly<Record<string, unknown>> = Predicate.isObject(module) ? { ...module } : {}
  const tasks = [exported["default"], exported["tasks"]].find(isTasks)
  if (tasks === undefined) return yield* refused(path, describeExports(Object.keys(exported)))
  return { ...tasks, workers: withNamedErrors(path, tasks.workers) }
})

const sentence = (path: string, problem: string) => `The tasks module ${path} ${problem}`

const refused = (path: string, problem: string) => new Startup.StartRefused({ message: sentence(path, problem) })

const withNamedErrors = (path: string, workers: Tasks["workers"]): Tasks["workers"] =>
  Layer.catchCause(workers, (cause) =>
    Layer.effectDiscard(Effect.mapError(Effect.failCause(cause), (error) => namedError(path, error)))
  )

const namedError = (path: string, error: unknown) => {
  // The variables of the broker and of Redis belong to the role.
  if (error instanceof BrokerError || error instanceof RedisError) return error
  if (error instanceof Config.ConfigError) {
    const problem = error.cause.message.replace(/\s+/g, " ")
    return refused(path, `cannot be run: a variable that it reads is missing or invalid: ${problem}`)
  }
  const problem = `cannot be run: ${Startup.messageOf(error)}`
  const isMistake = error instanceof TopologyError || error instanceof SettingsError
  return isMistake ? refused(path, problem) : new WorkersFailed({ message: sentence(path, problem) })
}

/** Nothing else is printed before the module is loaded. */
const noticeOfSlowLoad = (path: string): Effect.Effect<never> =>
  Effect.sleep("10 seconds").pipe(
    Effect.andThen(
      Console.error(
        `The tasks module ${path} has been loading for 10 seconds: it, or a module that it imports, awaits something outside of all functions. The start continues when that is done.`
      )
    ),
    Effect.andThen(Effect.never)
  )

const describeExports = (names: ReadonlyArray<string>): string =>
  `exports no tasks. Export what defineTasks of svc-runtime returns, as "default" or as "tasks". ${names.length === 0 ? "The module exports nothing." : `The module exports ${names.join(", ")}.`}`

/** An error says where it was thrown: in the module, or in a file that the module imports. */
const describe = (cause: unknown, file: string): string => {
  if (!(cause instanceof Error)) return `it throws ${inspect(cause)}`
  const place = placeOf(cause, file)
  const hint = Predicate.hasProperty(cause, "code") ? hints.get(cause.code) : undefined
  return `${cause.name}: ${cause.message}${place === undefined ? "" : ` (at ${place})`}${hint === undefined ? "" : `. ${hint}`}`
}

/** What to do about errors of Node that name only a file. */
const hints: ReadonlyMap<unknown, string> = new Map([
  [
    "ERR_UNKNOWN_FILE_EXTENSION",
    `This Node (${process.version}) cannot load such a file. For TypeScript use the extension .ts and a Node that removes types, which is Node 22.18 or 23.6 or later without --no-experimental-strip-types.`
  ],
  [
    "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING",
    "Node removes no types in node_modules. Name a module outside of it, or one in JavaScript."
  ]
])

/**
 * Node puts the place of a syntax error on the first line of the stack, and that of a thrown one into its frames. Frames
 * of Node itself, such as `node:internal/modules/esm/resolve:272:11`, are no place.
 */
const placeOf = (error: Error, file: string): string | undefined => {
  // A thrown error may have anything in the place of its stack.
  const stack: unknown = error.stack
  if (!Predicate.isString(stack)) return undefined
  const places = [...stack.matchAll(/(?<![^\s(])(file:\/\/[^\s()]+?|\/[^\s():]+):(\d+)(?::(\d+))?/g)].flatMap(
    ([, at = "", line, column]) =>
      Option.toArray(pathOf(at)).map((path) => ({ path, position: column === undefined ? line : `${line}:${column}` }))
  )
  const own = places.find(({ path }) => path === file) ?? places.find(({ path }) => !path.includes("node_modules"))
  return own && `${relative(process.cwd(), own.path)}:${own.position}`
}

const toPath = Option.liftThrowable((url: string) => fileURLToPath(url))

/** Returns `none` for a URL that is no path here, such as one with a host. */
const pathOf = (at: string): Option.Option<string> =>
  at.startsWith("file:") ? toPath(at.replace(/\?.*$/, "")) : Option.some(at)

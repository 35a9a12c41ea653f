import { existsSync } from "node:fs"
import { relative, resolve } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { Effect, Predicate } from "effect"
import { isTasks, type Tasks } from "../../src/tasks/Tasks.ts"
import { StartRefused } from "../Startup.ts"

/** Loads the tasks that a module exports as `default` or `tasks`. The path may be relative to the working directory. */
export const load = Effect.fnUntraced(function* (path: string): Effect.fn.Return<Tasks, StartRefused> {
  const file = resolve(path)
  if (!existsSync(file)) return yield* refused(path, `does not exist: there is no file ${file}`)
  const module = yield* Effect.tryPromise({
    try: (): Promise<unknown> => import(pathToFileURL(file).href),
    catch: (cause) => refused(path, `cannot be loaded: ${describe(cause, file)}`)
  })
  const exported: Readonly<Record<string, unknown>> = Predicate.isObject(module) ? { ...module } : {}
  const tasks = [exported["default"], exported["tasks"]].find(isTasks)
  return tasks ?? (yield* refused(path, describeExports(Object.keys(exported))))
})

const refused = (path: string, problem: string) => new StartRefused({ message: `The tasks module ${path} ${problem}` })

const describeExports = (names: ReadonlyArray<string>): string =>
  `exports no tasks. Export what defineTasks of svc-runtime returns, as "default" or as "tasks". ${names.length === 0 ? "The module exports nothing." : `The module exports ${names.join(", ")}.`}`

/** An error says where it was thrown: in the module, or in a file that the module imports. */
const describe = (cause: unknown, file: string): string => {
  if (!(cause instanceof Error)) return String(cause)
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
const placeOf = ({ stack = "" }: Error, file: string): string | undefined => {
  const places = [...stack.matchAll(/(?<![^\s(])(file:\/\/[^\s()]+?|\/[^\s():]+):(\d+)(?::(\d+))?/g)].map(
    ([, at = "", line, column]) => ({
      path: at.startsWith("file:") ? fileURLToPath(at.replace(/\?.*$/, "")) : at,
      position: column === undefined ? line : `${line}:${column}`
    })
  )
  const own = places.find(({ path }) => path === file) ?? places.find(({ path }) => !path.includes("node_modules"))
  return own && `${relative(process.cwd(), own.path)}:${own.position}`
}

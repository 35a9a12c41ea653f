import { rmdir } from "node:fs/promises"
import { basename, dirname, join, relative, resolve } from "node:path"
import { Console, Data, Effect, Exit, FileSystem, type PlatformError, Runtime, type Scope } from "effect"
import * as OwnPackage from "./OwnPackage.ts"
import * as ProjectName from "./ProjectName.ts"

/** The project is not written. */
export class ProjectRefused extends Data.TaggedError("ProjectRefused")<{ readonly message: string }> {
  override readonly [Runtime.errorExitCode] = 1
}

const templateFolder = "layers/commands/init/template"
const templateName = "my-app"

/** The names of files that would have a meaning to npm inside this package. */
const storedAs: ReadonlyMap<string, string> = new Map([
  ["manifest.json", "package.json"],
  ["gitignore", ".gitignore"]
])

/** The manifest of the template has "*" for each version. */
const versionPlaceholder = /"([^"]+)": "\*"/g

/** Writes a project into a folder that is new or empty. Writes everything or nothing. */
export const create = Effect.fnUntraced(function* (folder: string) {
  const project = resolve(folder)
  const name = basename(project)
  const own = yield* OwnPackage.read
  const template = yield* Effect.orDie(readTemplate(own.folder))
  const dependencies = [...(template.get("package.json") ?? "").matchAll(versionPlaceholder)].map(([, of = ""]) => of)
  const mistake = ProjectName.mistakeIn(name, dependencies)
  if (mistake !== undefined) return yield* new ProjectRefused({ message: mistake })
  yield* refuseUsed(project, folder)
  const source = OwnPackage.dependencyOf(own, project)
  const versions: Readonly<Record<string, string>> = { ...own.versions, "svc-runtime": source }
  yield* Effect.scoped(
    Effect.gen(function* () {
      yield* makeFolder(project)
      for (const [file, text] of template) yield* write(join(project, file), fill(text, name, versions))
    })
  ).pipe(
    Effect.mapError(
      (error) =>
        new ProjectRefused({ message: `The project cannot be written: ${reasonOf(error)}. Nothing of it was kept.` })
    )
  )
  yield* Console.log(describeNext(name, project, source))
})

const readTemplate = Effect.fnUntraced(function* (packageFolder: string) {
  const files = yield* FileSystem.FileSystem
  const folder = join(packageFolder, templateFolder)
  const names = yield* files.readDirectory(folder)
  const texts = yield* Effect.forEach(names.sort(), (stored) =>
    Effect.map(files.readFileString(join(folder, stored)), (text) => [storedAs.get(stored) ?? stored, text] as const)
  )
  return new Map(texts)
})

const fill = (text: string, name: string, versions: Readonly<Record<string, string>>): string =>
  text
    .replaceAll(versionPlaceholder, (_, of: string) => `"${of}": ${JSON.stringify(versions[of] ?? "*")}`)
    .replaceAll(templateName, name)

const refuseUsed = Effect.fnUntraced(function* (project: string, folder: string) {
  const files = yield* FileSystem.FileSystem
  const entries = yield* files.readDirectory(project).pipe(
    Effect.catchIf(
      ({ reason }) => reason._tag === "NotFound",
      () => Effect.succeed([])
    ),
    Effect.mapError((error) => new ProjectRefused({ message: `${folder} cannot be used: ${reasonOf(error)}.` }))
  )
  if (entries.length === 0) return
  return yield* new ProjectRefused({
    message: `The folder ${folder} is not empty. Name a new folder or an empty one; nothing was written.`
  })
})

/** Makes the folder and those above it that do not exist. */
const makeFolder = (
  path: string
): Effect.Effect<void, PlatformError.PlatformError, FileSystem.FileSystem | Scope.Scope> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    if (yield* files.exists(path)) return
    yield* makeFolder(dirname(path))
    // A folder into which somebody else has put a file meanwhile stays.
    yield* undoable(
      files.makeDirectory(path),
      Effect.promise(() => rmdir(path))
    )
  })

const write = Effect.fnUntraced(function* (path: string, text: string) {
  const files = yield* FileSystem.FileSystem
  // The file exists before its text is written, so that one of which only a part could be written is removed too.
  yield* undoable(files.writeFileString(path, "", { flag: "wx" }), files.remove(path))
  yield* files.writeFileString(path, text)
})

/** Undoes the step if a later one of the scope fails. */
const undoable = (
  step: Effect.Effect<void, PlatformError.PlatformError>,
  undo: Effect.Effect<void, PlatformError.PlatformError>
) => Effect.acquireRelease(step, (_, exit) => (Exit.isSuccess(exit) ? Effect.void : Effect.ignoreCause(undo)))

/** The message of the system, which says more than the kinds of Effect. */
const reasonOf = ({ message, reason }: PlatformError.PlatformError): string =>
  reason.cause instanceof Error ? reason.cause.message : message

const describeNext = (name: string, project: string, source: string): string => {
  const path = relative("", project)
  const commands = [...(path === "" ? [] : [`cd ${quote(path)}`]), "npm install", "npm test", "npm start"]
  return [
    `The project ${name} is written. It depends on svc-runtime ${source}. Next:`,
    "",
    ...commands.map((command) => `  ${command}`),
    "",
    "Its README.md shows how to publish a task and how to follow it."
  ].join("\n")
}

/** For a shell. */
const quote = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`)

import { execFile } from "node:child_process"
import { copyFileSync, cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { basename, delimiter, dirname, join } from "node:path"
import { root } from "../Guides.ts"

const bin = join(root, "node_modules", ".bin")

/** The environment of a shell whose Node is that of the folder. Default: the one that runs the tests. */
export const environment = (nodeFolder = dirname(process.execPath)): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: [nodeFolder, bin, process.env["PATH"]].join(delimiter)
})

export interface Ended {
  readonly code: number
  readonly out: string
  readonly errors: string
}

/** Runs a program to its end, however it ends. */
export const end = (cwd: string, command: ReadonlyArray<string>, env = environment()) =>
  new Promise<Ended>((resolve) => {
    const [program = "", ...args] = command
    execFile(program, args, { cwd, env, maxBuffer: 1e8 }, (error, out, errors) =>
      resolve({ code: error === null ? 0 : typeof error.code === "number" ? error.code : -1, out, errors })
    )
  })

/** Runs a program that must succeed. */
export const run = async (cwd: string, command: ReadonlyArray<string>, env = environment()): Promise<string> => {
  const { code, errors, out } = await end(cwd, command, env)
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${out}${errors}`)
  return out
}

const sources = ["package.json", "tsconfig.json", "README.md", "LICENSE", "CHANGELOG.md", "src", "layers", "migrations"]

/**
 * Returns the path of the tarball: the one that `SVC_TEST_PACKAGE` names, as `npm run check` leaves it behind, or a new
 * one. It is built in a copy, because other tests read the repository meanwhile.
 */
export const pack = async (folder: string): Promise<string> => {
  const packed = process.env["SVC_TEST_PACKAGE"]
  if (packed !== undefined) {
    const tarball = join(folder, basename(packed))
    copyFileSync(packed, tarball)
    return tarball
  }
  const copy = join(folder, "source")
  for (const name of sources) cpSync(join(root, name), join(copy, name), { recursive: true })
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
  await run(copy, ["npm", "run", "build"])
  await run(copy, ["npm", "pack", "--ignore-scripts", "--pack-destination", folder])
  const [tarball = ""] = readdirSync(folder).filter((name) => name.endsWith(".tgz"))
  return join(folder, tarball)
}

const quiet = ["--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts"]

/** An empty project with nothing but the package. npm installs its peers. */
export const installInto = async (folder: string, tarball: string): Promise<void> => {
  mkdirSync(folder)
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "app", private: true, type: "module" }))
  await run(folder, ["npm", "install", ...quiet, tarball])
}

export const npmInstall = ["npm", "install", ...quiet]

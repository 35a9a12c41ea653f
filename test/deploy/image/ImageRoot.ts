import { execFile } from "node:child_process"
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs"
import { rm } from "node:fs/promises"
import { homedir, tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { promisify } from "node:util"
import { root as repository } from "../../Guides.ts"
import { repository as files } from "../Files.ts"
import * as Dockerfile from "./Dockerfile.ts"

/** What the steps of a Dockerfile make. */
export interface ImageRoot {
  /** The folder of the last stage. */
  readonly folder: string
  readonly stage: Dockerfile.Stage
  readonly remove: () => Promise<void>
}

const execute = async (program: string, ...args: ReadonlyArray<string>): Promise<string> =>
  (await promisify(execFile)(program, [...args], { maxBuffer: 1e8 })).stdout

/** The PATH of the image of Node. */
export const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/**
 * Plays a Dockerfile in folders of this machine, each of which is the root of a stage. Needs the rights of root, and
 * debootstrap.
 */
export const play = async (text: string): Promise<ImageRoot> => {
  const folder = mkdtempSync(join(tmpdir(), "svc-image-"))
  const base = join(folder, "base")
  const played = new Map<string, string>()
  let last = { folder: base, stage: Dockerfile.imageOf(files) }
  for (const [index, stage] of Dockerfile.stages(text).entries()) {
    if (index === 0) await makeBase(base, stage.image)
    const root = join(folder, `stage-${index}`)
    await execute("cp", "-a", base, root)
    await playStage(stage, root, played)
    if (stage.name !== undefined) played.set(stage.name, root)
    last = { folder: root, stage }
  }
  return { ...last, remove: () => rm(folder, { recursive: true, force: true }) }
}

/** What the image of Node contains: the release of Debian in its name, libatomic1, npm, and the `node` of npm's package. */
const makeBase = async (base: string, image: string): Promise<void> => {
  const [, release = ""] = /-(\w+)-slim$/.exec(image) ?? []
  await execute("debootstrap", "--variant=minbase", "--include=libatomic1", release, base)
  const programs = join(base, "usr/local/bin")
  cpSync(join(repository, "node_modules/node/bin/node"), join(programs, "node"))
  const npm = dirname(dirname(realpathSync((await execute("which", "npm")).trim())))
  cpSync(npm, join(base, "usr/local/lib/node_modules/npm"), { recursive: true })
  for (const name of ["npm", "npx"]) symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(programs, name))
}

const playStage = async (stage: Dockerfile.Stage, root: string, played: ReadonlyMap<string, string>) => {
  let workdir = "/"
  for (const [index, step] of stage.steps.entries()) {
    switch (step.keyword) {
      case "WORKDIR":
        workdir = resolve(workdir, step.words[0] ?? "")
        mkdirSync(join(root, workdir), { recursive: true })
        break
      case "COPY":
        await copy(step, root, workdir, played)
        break
      case "RUN":
        await run(step.text, root, workdir, Dockerfile.environmentOf({ ...stage, steps: stage.steps.slice(0, index) }))
        break
      case "ENV":
      case "LABEL":
      case "EXPOSE":
      case "USER":
      case "STOPSIGNAL":
      case "HEALTHCHECK":
      case "ENTRYPOINT":
      case "CMD":
        break
      default:
        throw new Error(`${step.keyword} cannot be played`)
    }
  }
}

/** Copies the content of a folder, and a file under its name into a target that is a folder, as Docker does. */
const copy = async (step: Dockerfile.Step, root: string, workdir: string, played: ReadonlyMap<string, string>) => {
  const sources = step.words.slice(0, -1)
  const target = step.words.at(-1) ?? ""
  const destination = join(root, resolve(workdir, target))
  for (const source of sources) {
    const from = step.flags["from"]
    const to = target.endsWith("/") ? join(destination, source) : destination
    if (from !== undefined) {
      mkdirSync(dirname(to), { recursive: true })
      await execute("cp", "-a", join(played.get(from) ?? "", source), to)
    } else copyFromContext(source, to)
  }
}

const copyFromContext = (source: string, to: string): void => {
  const isSent = Dockerfile.isInContext(files)
  const found = globSync([source, `${source}/**/*`], { cwd: repository, withFileTypes: true })
  for (const entry of found) {
    const file = join(entry.parentPath, entry.name).slice(repository.length)
    if (!entry.isFile() || !isSent(file)) continue
    cpSync(join(repository, file), join(to, file.slice(source.length)))
  }
}

/** Runs a command in the root, with the network, the cache of npm and the certificates of this machine. */
const run = async (command: string, root: string, workdir: string, environment: Readonly<Record<string, string>>) => {
  const certificates = process.env["NODE_EXTRA_CA_CERTS"]
  const cache = join(homedir(), ".npm")
  mkdirSync(join(root, "run/machine/npm"), { recursive: true })
  mkdirSync(cache, { recursive: true })
  cpSync("/etc/resolv.conf", join(root, "etc/resolv.conf"))
  if (certificates !== undefined && existsSync(certificates))
    cpSync(realpathSync(certificates), join(root, "run/machine/certificates"))
  const variables = {
    PATH: path,
    HOME: "/root",
    npm_config_cache: "/run/machine/npm",
    npm_config_prefer_offline: "true",
    NODE_EXTRA_CA_CERTS: "/run/machine/certificates",
    ...environment
  }
  const script = [
    `mount --bind "$1" "$2/run/machine/npm"`,
    `mount -t proc proc "$2/proc"`,
    `exec chroot "$2" /usr/bin/env -i -C "$3" ${words(variables)} /bin/sh -c "$4"`
  ].join("\n")
  const apart = ["--mount", "--pid", "--fork", "--kill-child"]
  await execute("unshare", ...apart, "sh", "-ec", script, "sh", cache, root, workdir, command)
  rmSync(join(root, "run/machine"), { recursive: true })
}

/** The variables as words of a shell. */
export const words = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    .map(([name, value]) => `'${name}=${value}'`)
    .join(" ")

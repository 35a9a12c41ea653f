import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import * as Dockerfile from "./Dockerfile.ts"
import { type ImageRoot, path, words } from "./ImageRoot.ts"

/** The program of an image as process 1, as the image's user, in a network of its own, where it can write nothing. */
export interface ImageContainer {
  readonly output: () => string
  /** The exit code and the output of a command beside the program. */
  readonly execute: (command: ReadonlyArray<string>) => { readonly code: number | null; readonly said: string }
  /** The command line of process 1. */
  readonly program: () => string
  /** Sends SIGTERM to process 1, as `docker stop` does. Returns the exit code. */
  readonly stop: () => Promise<number | null>
  readonly kill: () => void
}

/** `command` stands for CMD. */
export const start = ({ folder, stage }: ImageRoot, command?: ReadonlyArray<string>): ImageContainer => {
  const user = Dockerfile.last(stage, "USER")?.words[0] ?? ""
  const workdir = Dockerfile.last(stage, "WORKDIR")?.words[0] ?? "/"
  const variables = words({ PATH: path, ...Dockerfile.environmentOf(stage) })
  const asUser = `chroot --userspec=${user} --groups= "$root" /usr/bin/env -i -C ${workdir} ${variables} "$@"`
  const script = [
    `root="$1"`,
    "shift",
    `mount --bind "$root" "$root"`,
    `mount -o remount,bind,ro "$root"`,
    `mount -t proc proc "$root/proc"`,
    "ip link set lo up",
    `exec ${asUser}`
  ].join("\n")
  const wordsOf = (keyword: string) => Dockerfile.last(stage, keyword)?.words ?? []
  const startWords = [...wordsOf("ENTRYPOINT"), ...(command ?? wordsOf("CMD"))]
  const apart = ["--mount", "--net", "--pid", "--fork", "--kill-child=SIGKILL"]
  const child = spawn("unshare", [...apart, "sh", "-ec", script, "sh", folder, ...startWords], {
    stdio: ["ignore", "pipe", "pipe"]
  })
  let output = ""
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk
    })
  }
  const exited = once(child, "exit").then(([code]): number | null => code)
  /** This machine's number of process 1. */
  const pid = () => Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8"))
  return {
    output: () => output,
    execute: (command) => {
      const inside = ["--target", String(pid()), "--mount", "--net", "--pid"]
      const words = [...inside, "sh", "-ec", `root="$1"; shift; exec ${asUser}`, "sh", folder, ...command]
      const { status, stderr, stdout } = spawnSync("nsenter", words, { encoding: "utf8" })
      return { code: status, said: stdout + stderr }
    },
    program: () => readFileSync(`/proc/${pid()}/cmdline`, "utf8").split("\0").join(" ").trim(),
    stop: () => {
      process.kill(pid(), "SIGTERM")
      return exited
    },
    kill: () => void child.kill("SIGKILL")
  }
}

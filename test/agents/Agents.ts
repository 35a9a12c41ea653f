import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, type Scope } from "effect"
import { inject } from "vitest"

/** Null: the agents are not installed, and what needs them is skipped. */
export const programs = inject("agents")

/** What became of a run. */
export interface Run {
  /** The exit code, or the signal that ended the program. */
  readonly exit: number | NodeJS.Signals
  readonly stdout: string
  /** Both streams. */
  readonly output: string
}

/** The agents' own folders. */
export interface Home {
  readonly path: string
  /** The folder that an agent is started in. */
  readonly project: string
}

const caches = fileURLToPath(new URL("../../node_modules/.cache/", import.meta.url))

/** A home of its own, removed with the scope. Codex refuses one below the system's folder of temporary files. */
export const temporaryHome: Effect.Effect<Home, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(async () => {
    await mkdir(caches, { recursive: true })
    const path = await mkdtemp(join(caches, "agents-"))
    const project = join(path, "project")
    await mkdir(project)
    return { path, project }
  }),
  ({ path }) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

/** An agent that runs longer is killed, and its exit is the signal. */
const endsWithinMs = 90_000

/** Nobody listens there. An agent that calls anything beside the gateway fails at once instead of leaving the machine. */
const nowhere = "http://127.0.0.1:9"

const run = (
  program: string,
  args: ReadonlyArray<string>,
  home: Home,
  environment: Readonly<Record<string, string>>
): Effect.Effect<Run> =>
  Effect.promise(async () => {
    // An agent may end before a slow reader has taken all that is in its pipe. A file takes it at once.
    const path = join(home.path, `stdout-${randomUUID()}`)
    const file = await open(path, "w")
    const child = spawn(program, args, {
      cwd: home.project,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: home.path,
        HTTP_PROXY: nowhere,
        HTTPS_PROXY: nowhere,
        NO_PROXY: "127.0.0.1",
        ...environment
      },
      stdio: ["ignore", file.fd, "pipe"],
      // a group of its own, so that what the agent started ends with it
      detached: true
    })
    let stderr = ""
    // a character may come in two pieces
    child.stderr?.setEncoding("utf8").on("data", (chunk) => {
      stderr += chunk
    })
    const endGroup = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
      } catch {
        // the group is gone
      }
    }
    // the streams are open until the last process of the group has ended
    const closed = once(child, "close")
    const deadline = setTimeout(endGroup, endsWithinMs)
    const [code, signal] = await once(child, "exit")
    clearTimeout(deadline)
    endGroup()
    await closed
    await file.close()
    const stdout = await readFile(path, "utf8")
    return { exit: code ?? signal, stdout, output: stdout + stderr }
  })

/** `claude -p`, as the gateway guide sets it up. `environment` comes on top. */
export const claudeCode = (
  gateway: string,
  key: string,
  home: Home,
  prompt: string,
  environment: Readonly<Record<string, string>> = {}
): Effect.Effect<Run> =>
  run(programs?.claudeCode ?? "", ["-p", prompt, "--allowedTools", "Read,Bash"], home, {
    ANTHROPIC_BASE_URL: gateway,
    ANTHROPIC_AUTH_TOKEN: key,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    DISABLE_TELEMETRY: "1",
    DISABLE_ERROR_REPORTING: "1",
    ...environment
  })

/** `codex exec`, as the gateway guide sets it up. `flags` come before the prompt. */
export const codex = (
  gateway: string,
  key: string,
  home: Home,
  prompt: string,
  flags: ReadonlyArray<string> = []
): Effect.Effect<Run> =>
  Effect.gen(function* () {
    const settings = join(home.path, ".codex")
    yield* Effect.promise(async () => {
      await mkdir(settings, { recursive: true })
      await writeFile(join(settings, "config.toml"), codexSettings(gateway))
    })
    // the fake asks for nothing but to read the test's own files, and containers often have no sandbox to offer
    const common = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return yield* run(programs?.codex ?? "", [...common, ...flags, "--", prompt], home, { KEY: key })
  })

const codexSettings = (gateway: string): string => `
model_provider = "gateway"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.gateway]
name = "gateway"
base_url = "${gateway}/v1"
env_key = "KEY"
wire_api = "responses"
stream_max_retries = 2
`

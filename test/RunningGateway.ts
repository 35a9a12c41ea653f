import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { Effect, type Scope } from "effect"

import { isTasksRole, type Role } from "../layers/DoorOptions.ts"
import { briefWasm } from "./BriefWasm.ts"

const ownRoot = fileURLToPath(new URL("..", import.meta.url))

/** The program as its users run it: a process of its own, on ports that the kernel chooses. */
export interface RunningGateway {
  readonly pid: number
  /** `http://127.0.0.1:port` of the proxy listener. */
  readonly proxy: string
  /** `http://127.0.0.1:port` of the control listener. */
  readonly control: string
  /** `http://127.0.0.1:port` of the listener of statuses, dead letters and graphs. */
  readonly status: string
  /** Where browsers find the upstream's UI; empty without `GATEWAY_UPSTREAM_UI_BIND_ADDR`. */
  readonly ui: string
  /** The listener for holders of keys; empty without `SVC_PORTAL_BIND_ADDR`. */
  readonly portal: string
  /** Everything that it wrote so far, both streams. */
  readonly output: () => string
  readonly signal: (signal: NodeJS.Signals) => void
  /** Its exit code, or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>
  /** A call of the operator API; a refusal is a defect of the test. */
  readonly operate: Operate
  /** The same, with another operator token. */
  readonly operateAs: (token: string) => Operate
}

export type Operate = (method: string, path: string, body?: unknown) => Promise<unknown>

export interface Options {
  readonly role?: Role
  readonly environment?: Readonly<Record<string, string>>
  readonly flags?: ReadonlyArray<string>
  /** Runs the example's tasks. Default: in the roles that need tasks, unless `tasks` names others. */
  readonly example?: boolean
  /** The module of the tasks. */
  readonly tasks?: string
  /** Node strips the types itself, as with `npm start`, or has tsx do it. Default: `node`. */
  readonly types?: "node" | "tsx"
  /** The folder of the program. Default: this one. */
  readonly root?: string
  /** The operator token to use; by default a fresh one, set as `GATEWAY_ADMIN_TOKEN`. */
  readonly adminToken?: string
}

export const newAdminToken = () => `op_live_${randomBytes(32).toString("hex")}`

// a machine that is busy takes more than a minute
const startsWithin = 150_000

/** Nothing of the outer environment gets in but what a program needs to run at all. */
const bare = () => ({
  PATH: process.env["PATH"] ?? "",
  HOME: process.env["HOME"] ?? "",
  NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? ""
})

/** Starts a process and answers at once, whether or not it will ever listen. */
export const launch = (options: Options) => {
  const { environment = {}, flags = [], role = "all", types = "node" } = options
  const { tasks } = options
  const example = options.example ?? (isTasksRole(role) && tasks === undefined)
  const ofTasks = [...(example ? ["--example"] : []), ...(tasks === undefined ? [] : ["--tasks", tasks])]
  return command([role, ...flags, ...ofTasks], environment, types, options.root)
}

/** The program with those words behind its name. */
export const command = (
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>>,
  types: "node" | "tsx" = "node",
  root: string = ownRoot
) => {
  const flags = ["--max-semi-space-size=64", ...briefWasm, ...(types === "tsx" ? ["--import", "tsx"] : [])]
  const child = spawn(process.execPath, [...flags, "src/main.ts", ...args], {
    cwd: root,
    env: {
      ...bare(),
      GATEWAY_BIND_ADDR: "127.0.0.1:0",
      GATEWAY_CONTROL_BIND_ADDR: "127.0.0.1:0",
      SVC_STATUS_BIND_ADDR: "127.0.0.1:0",
      LOG_LEVEL: "debug",
      ...environment
    },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let output = ""
  child.stdout.on("data", (chunk) => {
    output += chunk
  })
  child.stderr.on("data", (chunk) => {
    output += chunk
  })
  const exited = once(child, "exit").then(([code, signal]): number | NodeJS.Signals => code ?? signal)
  return { child, exited, output: () => output }
}

const listening = (output: string, name: string): string | undefined =>
  new RegExp(`^ {2}${name} +(http://\\S+?)(?:/admin-ui\\S*)?$`, "m").exec(output)?.[1]

const ready = async (child: ChildProcess, output: () => string, names: ReadonlyArray<string>) => {
  const deadline = AbortSignal.timeout(startsWithin)
  while (names.some((name) => listening(output(), name) === undefined)) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`it ended instead of starting:\n${output()}`)
    const turn = new AbortController()
    const signal = AbortSignal.any([deadline, turn.signal])
    await Promise.race([once(child.stdout ?? child, "data", { signal }), once(child, "exit", { signal })])
      .catch(() => {
        throw new Error(`it did not start within ${startsWithin} ms:\n${output()}`)
      })
      .finally(() => turn.abort())
  }
}

const listeners: Readonly<Record<Role, ReadonlyArray<string>>> = {
  gateway: ["control", "proxy"],
  control: ["control"],
  messaging: ["control"],
  status: ["control", "status"],
  graph: ["control", "status"],
  all: ["control", "proxy"]
}

const listenersOf = (role: Role, hasTasks: boolean): ReadonlyArray<string> =>
  role === "all" && hasTasks ? [...listeners.all, "status"] : listeners[role]

/** A started process, ended with the scope. */
export const start = (options: Options): Effect.Effect<RunningGateway, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const adminToken = options.adminToken ?? newAdminToken()
      const role = options.role ?? "all"
      const { child, exited, output } = launch({
        ...options,
        environment: { GATEWAY_ADMIN_TOKEN: adminToken, ...options.environment }
      })
      const hasTasks = options.example === true || options.tasks !== undefined
      await ready(child, output, listenersOf(role, hasTasks)).catch((cause: unknown) => {
        child.kill("SIGKILL")
        throw cause
      })
      const control = listening(output(), "control") ?? ""
      const running: RunningGateway = {
        pid: child.pid ?? 0,
        proxy: listening(output(), "proxy") ?? "",
        control,
        status: listening(output(), "status") ?? "",
        ui: listening(output(), "ui") ?? "",
        portal: listening(output(), "portal") ?? "",
        output,
        exited,
        signal: (signal) => void child.kill(signal),
        operate: operateAs(control, adminToken),
        operateAs: (token) => operateAs(control, token)
      }
      return running
    }),
    (running) =>
      Effect.promise(async () => {
        running.signal("SIGKILL")
        await running.exited
      })
  )

const operateAs =
  (control: string, token: string): Operate =>
  async (method, path, body) => {
    const response = await fetch(`${control}/admin-ui/admin${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" })
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
    return text === "" ? undefined : JSON.parse(text)
  }

/** A new key's raw form and id. */
export const createKey = async (
  gateway: RunningGateway,
  body: Readonly<Record<string, unknown>> & { readonly policy?: object } = {}
): Promise<{ readonly raw: string; readonly id: string }> => {
  // The simulator's models have no price, and a new key with a budget refuses such models.
  const policy = { unpriced_models: "flat", ...body.policy }
  const created = await gateway.operate("POST", "/keys", { owner_type: "individual", ...body, policy })
  if (!isCreated(created)) throw new Error("a created key has another form")
  return { raw: created.raw_key, id: created.key.id }
}

const isCreated = (value: unknown): value is { readonly raw_key: string; readonly key: { readonly id: string } } =>
  typeof value === "object" && value !== null && "raw_key" in value && "key" in value

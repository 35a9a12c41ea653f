import { type ChildProcess, execFile, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect, Redacted, Schedule } from "effect"
import * as LocalPort from "./LocalPort.ts"

/** Not `/usr/sbin/rabbitmq-server`, which changes the user and takes none of the environment along. */
const scripts = "/usr/lib/rabbitmq/bin"

/** Without the server there is nothing to kill: what needs it is skipped. */
export const available = existsSync(join(scripts, "rabbitmq-server"))

if (!available) process.stderr.write("\n  SKIPPED: everything that kills a RabbitMQ: no rabbitmq-server here\n")

/**
 * A RabbitMQ of its own, to be killed, alarmed and started again on the same port with what it has on disk. It takes
 * about ten seconds to start. `environment`: of RabbitMQ's own variables.
 */
export const make = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>> = {}) {
  const made = yield* node(yield* home, yield* Effect.all(ports), [], environment)
  yield* made.start
  return made
})

/** Three that find each other by their names when they start for the first time. That takes about twenty seconds. */
export const cluster = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>> = {}) {
  const shared = yield* home
  const all = yield* Effect.all([Effect.all(ports), Effect.all(ports), Effect.all(ports)])
  const peers = all.map(({ port }, n) => `cluster_formation.classic_config.nodes.${n + 1} = ${nameOf(port)}`)
  const configuration = ["cluster_formation.peer_discovery_backend = classic_config", ...peers]
  const [a, b, c] = all
  const nodes = yield* Effect.all([
    node(shared, a, configuration, environment),
    node(shared, b, configuration, environment),
    node(shared, c, configuration, environment)
  ])
  yield* Effect.forEach(nodes, (node) => node.start, { concurrency: "unbounded", discard: true })
  return nodes
})

export type Node = Effect.Success<ReturnType<typeof make>>

interface Home {
  readonly directory: string
  /** Of the epmd, which knows the nodes by their names. */
  readonly names: number
}

/** A directory that is gone with the scope, with the secret by which nodes and tools trust each other. */
const home = Effect.gen(function* () {
  const names = yield* LocalPort.free
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "svc-rabbitmq-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, maxRetries: 5 }))
  )
  writeFileSync(join(directory, ".erlang.cookie"), randomUUID(), { mode: 0o400 })
  // In the foreground, and so ours to stop: the server would start one that stays.
  const epmd = spawn("epmd", ["-port", String(names)], { stdio: "ignore" })
  yield* Effect.addFinalizer(() => Effect.sync(() => epmd.kill("SIGKILL")))
  // a node that starts before it listens gives up for good
  yield* Effect.retry(LocalPort.answers(names), Schedule.spaced("20 millis"))
  return { directory, names }
})

const nameOf = (port: number) => `svc-test-${port}@localhost`

const node = Effect.fnUntraced(function* (
  home: Home,
  { distribution, port }: { readonly distribution: number; readonly port: number },
  configuration: ReadonlyArray<string> = [],
  more: Readonly<Record<string, string>> = {}
) {
  const name = nameOf(port)
  const directory = join(home.directory, name)
  mkdirSync(directory)
  const file = (name: string, content: string) => {
    writeFileSync(join(directory, name), content)
    return join(directory, name)
  }
  const environment = {
    PATH: process.env["PATH"],
    HOME: home.directory,
    ERL_EPMD_PORT: String(home.names),
    RABBITMQ_NODENAME: name,
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_MNESIA_BASE: join(directory, "database"),
    RABBITMQ_LOGS: join(directory, "log"),
    RABBITMQ_CONFIG_FILE: file(
      "rabbitmq.conf",
      [`listeners.tcp.1 = 127.0.0.1:${port}`, ...configuration, ""].join("\n")
    ),
    RABBITMQ_ENABLED_PLUGINS_FILE: file("plugins", "[]."),
    RABBITMQ_CONF_ENV_FILE: join(directory, "none"),
    RABBITMQ_PID_FILE: join(directory, "pid"),
    ...more
  }

  let running: ChildProcess | undefined
  const launch = Effect.sync(() => {
    running = spawn(join(scripts, "rabbitmq-server"), { env: environment, stdio: "ignore", detached: true })
  })
  const open = Effect.retry(LocalPort.answers(port), Schedule.spaced("20 millis"))
  /** One that ended before it listened is launched again: it may have found no epmd, or somebody else's port. */
  const start = Effect.retry(
    Effect.andThen(
      Effect.suspend(() => (running === undefined || running.exitCode !== null ? launch : Effect.void)),
      LocalPort.answers(port)
    ),
    Schedule.spaced("20 millis")
  )
  /** The script that was started, and the server that it started. */
  const signal = (pid: number, signal: "SIGKILL" | 0) => {
    try {
      return process.kill(-pid, signal)
    } catch {
      return false
    }
  }
  const kill = Effect.gen(function* () {
    const pid = running?.pid
    if (pid === undefined) return
    signal(pid, "SIGKILL")
    yield* Effect.repeat(
      Effect.sync(() => signal(pid, 0)),
      { until: (alive) => !alive, schedule: Schedule.spaced("5 millis") }
    )
    running = undefined
  })
  yield* Effect.addFinalizer(() => kill)
  const control = (...command: ReadonlyArray<string>) =>
    Effect.promise(() =>
      promisify(execFile)(join(scripts, "rabbitmqctl"), ["--node", name, ...command], { env: environment })
    )
  return {
    name,
    port,
    url: Redacted.make(`amqp://guest:guest@127.0.0.1:${port}`),
    start,
    launch,
    /** Waits for the port. */
    open,
    kill,
    /** Of a server that is killed: as if that had been before it wrote down what elects the leaders of its streams. */
    forgetStreams: Effect.sync(() =>
      rmSync(join(environment.RABBITMQ_MNESIA_BASE, name, "coordination", name, "names.dets"))
    ),
    /** By RabbitMQ's own tool; about a second each. */
    control,
    /** How many messages have died in quorum queues, and are in no other queue yet: AMQP counts them nowhere. */
    deadLettering: Effect.map(control("eval", deadLettering), ({ stdout }) => Number(stdout))
  }
})

/**
 * RabbitMQ 3.10 writes down the name of a new quorum queue half a second to a second later. Killed before, it does not
 * find the log again: the queue has no leader then, and whoever makes it elect one gives it an empty log. The same goes
 * for what elects the leaders of all streams, when the first of them is declared. A classic queue as young was gone as
 * well, with what it had confirmed: once in some 110 kills.
 */
export const writtenDown = Effect.sleep("2 seconds")

/** For the environment: how long RabbitMQ waits until it offers again what no queue took. By default three minutes. */
export const offeringSoon = {
  RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-rabbit dead_letter_worker_publisher_confirm_timeout 1000"
}

const deadLettering =
  "lists:sum([N || Q <- rabbit_amqqueue:list(), amqqueue:get_type(Q) =:= rabbit_quorum_queue, " +
  "{messages_dlx, N} <- rabbit_amqqueue:info(Q, [messages_dlx])])."

const ports = { port: LocalPort.free, distribution: LocalPort.free }

import { type ChildProcess, execFile, spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect, Redacted, Schedule } from "effect"

/** Not `/usr/sbin/rabbitmq-server`, which changes the user and takes none of the environment along. */
const scripts = "/usr/lib/rabbitmq/bin"

/** Without the server there is nothing to kill: what needs it is skipped. */
export const available = existsSync(join(scripts, "rabbitmq-server"))

if (!available) process.stderr.write("\n  SKIPPED: everything that kills a RabbitMQ: no rabbitmq-server here\n")

/**
 * A RabbitMQ of its own, to be killed, alarmed and started again on the same port with what it has on disk. It takes
 * about ten seconds to start.
 */
export const make = Effect.fnUntraced(function* () {
  const [port, distribution, names] = yield* Effect.all([freePort, freePort, freePort])
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "svc-rabbitmq-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, maxRetries: 5 }))
  )
  const file = (name: string, content: string) => {
    writeFileSync(join(directory, name), content)
    return join(directory, name)
  }
  const node = `svc-test-${port}@localhost`
  const environment = {
    PATH: process.env["PATH"],
    HOME: directory,
    ERL_EPMD_PORT: String(names),
    RABBITMQ_NODENAME: node,
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_MNESIA_BASE: join(directory, "database"),
    RABBITMQ_LOGS: join(directory, "log"),
    RABBITMQ_CONFIG_FILE: file("rabbitmq.conf", `listeners.tcp.1 = 127.0.0.1:${port}\n`),
    RABBITMQ_ENABLED_PLUGINS_FILE: file("plugins", "[]."),
    RABBITMQ_CONF_ENV_FILE: join(directory, "none"),
    RABBITMQ_PID_FILE: join(directory, "pid")
  }
  // In the foreground, and so ours to stop: the server would start one that stays.
  const epmd = spawn("epmd", ["-port", String(names)], { env: environment, stdio: "ignore" })
  yield* Effect.addFinalizer(() => Effect.sync(() => epmd.kill("SIGKILL")))

  let running: ChildProcess | undefined
  const launch = Effect.sync(() => {
    running = spawn(join(scripts, "rabbitmq-server"), { env: environment, stdio: "ignore", detached: true })
  })
  const open = Effect.retry(reachable(port), Schedule.spaced("20 millis"))
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
  yield* Effect.acquireRelease(launch, () => kill)
  yield* open
  return {
    port,
    url: Redacted.make(`amqp://guest:guest@127.0.0.1:${port}`),
    launch,
    /** Waits for the port. */
    open,
    kill,
    /** By RabbitMQ's own tool; about a second each. */
    control: (...command: ReadonlyArray<string>) =>
      Effect.promise(() =>
        promisify(execFile)(join(scripts, "rabbitmqctl"), ["--node", node, ...command], { env: environment })
      )
  }
})

const reachable = (port: number) =>
  Effect.callback<void, Error>((resume) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy()
      resume(Effect.void)
    })
    socket.on("error", (error) => resume(Effect.fail(error)))
  })

const freePort = Effect.callback<number>((resume) => {
  const probe = createServer()
  probe.listen(0, "127.0.0.1", () => {
    const address = probe.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    probe.close(() => resume(Effect.succeed(port)))
  })
})

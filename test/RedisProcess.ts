import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Redacted, Schedule } from "effect"
import { Redis as Ioredis } from "ioredis"
import { end } from "./EndedProcess.ts"
import * as LocalPort from "./LocalPort.ts"

/** Without the binary there is nothing to kill: what needs it is skipped. */
export const available = spawnSync("redis-server", ["--version"]).status === 0

if (!available) process.stderr.write("\n  SKIPPED: everything that kills a Redis: no redis-server binary here\n")

/**
 * A Redis of its own, to be killed and started again on the same port. It keeps nothing, and refuses every command that
 * Redis 6.0, the oldest that the specification asks for, does not have.
 */
export const make = Effect.fnUntraced(function* (...options: ReadonlyArray<string>) {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "svc-redis-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true }))
  )
  let running: ChildProcess | undefined
  const run = (port: number, options: ReadonlyArray<string>) =>
    Effect.suspend(() => {
      const child = spawn("redis-server", ["--port", String(port), "--save", "", "--dir", directory, ...options])
      running = child
      const ended = Effect.callback<never, Error>((resume) => {
        child.once("exit", () => resume(Effect.fail(new Error("redis-server ended as soon as it was started"))))
      })
      return Effect.raceFirst(Effect.retry(LocalPort.answers(port), Schedule.spaced("20 millis")), ended)
    })
  const kill = Effect.suspend(() => end(running, "SIGKILL"))
  const signal = (name: NodeJS.Signals) => Effect.sync(() => void running?.kill(name))
  yield* Effect.addFinalizer(() => kill)
  const begun = Effect.gen(function* () {
    const port = yield* LocalPort.free
    const url = Redacted.make(`redis://127.0.0.1:${port}`)
    yield* run(port, [])
    const refused = newer(yield* ask(url, "COMMAND", "DOCS")).flatMap((name) => ["--rename-command", name, ""])
    yield* kill
    const start = run(port, [...refused, ...options])
    yield* start
    return { port, url, start }
  })
  // somebody else may have taken the port meanwhile, or that of a cluster's bus
  const { port, start, url } = yield* Effect.retry(begun, { times: 5 })
  return {
    port,
    url,
    start,
    kill,
    /** It answers nothing; what is sent to it meanwhile is carried out when it thaws. */
    freeze: signal("SIGSTOP"),
    thaw: signal("SIGCONT")
  }
})

/** One command on a connection of its own. */
export const ask = (url: Redacted.Redacted, name: string, ...args: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const client = new Ioredis(Redacted.value(url))
    try {
      return await client.call(name, [...args])
    } finally {
      client.disconnect()
    }
  })

/** What has come since Redis 6.0, of the names and properties that `COMMAND DOCS` lists. */
const newer = (documented: unknown): ReadonlyArray<string> => {
  const listed: ReadonlyArray<unknown> = Array.isArray(documented) ? documented : []
  return listed.flatMap((name, i) => {
    const about: unknown = listed[i + 1]
    const since = Array.isArray(about) ? about[about.indexOf("since") + 1] : undefined
    return typeof name === "string" && typeof since === "string" && since >= "6.2" ? [name] : []
  })
}

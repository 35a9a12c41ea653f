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
  const port = yield* LocalPort.free
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "svc-redis-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true }))
  )
  const url = Redacted.make(`redis://127.0.0.1:${port}`)
  let running: ChildProcess | undefined
  const run = (options: ReadonlyArray<string>) =>
    Effect.suspend(() => {
      running = spawn("redis-server", ["--port", String(port), "--save", "", "--dir", directory, ...options])
      return Effect.retry(LocalPort.answers(port), Schedule.spaced("20 millis"))
    })
  const kill = Effect.suspend(() => end(running, "SIGKILL"))
  const signal = (name: NodeJS.Signals) => Effect.sync(() => void running?.kill(name))
  yield* Effect.addFinalizer(() => kill)
  yield* run([])
  const refused = newer(yield* ask(url, "COMMAND", "DOCS")).flatMap((name) => ["--rename-command", name, ""])
  yield* kill
  const start = run([...refused, ...options])
  yield* start
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

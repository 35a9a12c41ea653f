import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { Effect, Semaphore } from "effect"
import { eventually } from "../Eventually.ts"
import * as LocalPort from "../LocalPort.ts"
import * as TcpProxy from "../TcpProxy.ts"
import type { ReplicaOptions } from "./StatusPlanes.ts"

export interface Servers {
  readonly rabbitmq: { readonly port: number }
  readonly redis: { readonly port: number }
}

export type Replica = Effect.Success<ReturnType<typeof make>>

/**
 * A replica with what surrounds it: proxies on all its ways, and a supervisor. That it ends when it finds no server at
 * its start is well. Once it listens it should never end by itself: `crashed` says how it did.
 */
export const make = Effect.fnUntraced(function* (
  { rabbitmq, redis }: Servers,
  { kept, plane }: Pick<ReplicaOptions, "kept" | "plane">,
  crashed: Array<string>
) {
  const port = yield* LocalPort.free
  const proxy = (port: number) => TcpProxy.make({ host: "127.0.0.1", port })
  const ways = { streams: yield* proxy(port), rabbitmq: yield* proxy(rabbitmq.port), redis: yield* proxy(redis.port) }
  const options: ReplicaOptions = {
    rabbitmq: `amqp://guest:guest@127.0.0.1:${ways.rabbitmq.port}`,
    redis: `redis://127.0.0.1:${ways.redis.port}`,
    port,
    plane,
    kept
  }
  let running: { readonly child: ChildProcess; listens: boolean } | undefined

  const launch = () => {
    const child = spawn(process.execPath, [program, JSON.stringify(options)], { stdio: ["ignore", "pipe", "inherit"] })
    const launched = { child, listens: false }
    running = launched
    let output = ""
    child.stdout.on("data", (text: Buffer) => {
      output = (output + text.toString()).slice(-4_000)
      if (output.includes("listening\n")) launched.listens = true
    })
    child.once("exit", (code, signal) => {
      if (running !== launched) return
      if (launched.listens) crashed.push(`a replica ended with ${code ?? signal}: ${output}`)
      setTimeout(() => running === launched && launch(), 200)
    })
  }
  const end = (signal: NodeJS.Signals) =>
    Effect.promise(async () => {
      const ended = running?.child
      running = undefined
      if (ended === undefined || ended.exitCode !== null || ended.signalCode !== null) return
      const late = setTimeout(() => {
        crashed.push(`a replica did not end within ${goesWithin} ms of ${signal}`)
        ended.kill("SIGKILL")
      }, goesWithin)
      ended.kill(signal)
      await once(ended, "exit")
      clearTimeout(late)
    })
  const signal = (name: NodeJS.Signals) => Effect.sync(() => void running?.child.kill(name))
  const one = yield* Semaphore.make(1)

  yield* Effect.acquireRelease(Effect.sync(launch), () => end("SIGKILL"))
  return {
    /** For clients. */
    port: ways.streams.port,
    ways,
    listens: eventually(
      Effect.sync(() => running?.listens),
      (listens) => listens === true,
      "60 seconds"
    ),
    /** It is gone for so many milliseconds at least. */
    restart: (signal: "SIGKILL" | "SIGTERM", goneMs: number) =>
      one.withPermits(1)(end(signal).pipe(Effect.andThen(Effect.sleep(goneMs)), Effect.andThen(Effect.sync(launch)))),
    freeze: (ms: number) => one.withPermits(1)(Effect.andThen(signal("SIGSTOP"), Effect.delay(signal("SIGCONT"), ms)))
  }
})

/** It drains, and gives itself ten seconds for what it is storing. */
const goesWithin = 60_000

const program = fileURLToPath(new URL("StatusReplica.ts", import.meta.url))

import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { Data, Effect, type Scope } from "effect"

/** The bench cannot go on; why, in words for whoever typed the command. */
export class BenchFailed extends Data.TaggedError("BenchFailed")<{ readonly message: string }> {}

export interface Program {
  readonly name: string
  /** Default: this Node. */
  readonly command?: string
  /** For Node: flags, file, arguments. */
  readonly args: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  /** Default: this checkout. */
  readonly folder?: string
}

/** A process of the bench's own. It ends with the scope, by its id. */
export interface Child {
  readonly name: string
  readonly pid: number
  readonly running: () => boolean
  /** The end of what it wrote. */
  readonly lastWords: () => string
  readonly port: Effect.Effect<number, BenchFailed>
}

const startsWithin = "60 seconds"
const endsWithinMs = 10_000
const keptOutput = 4_000

export const start = (program: Program): Effect.Effect<Child, BenchFailed, Scope.Scope> =>
  Effect.map(Effect.acquireRelease(spawned(program), end), (process) => {
    let output = ""
    const keep = (bytes: Buffer) => {
      output = (output + bytes.toString()).slice(-keptOutput)
    }
    process.stdout?.on("data", keep)
    process.stderr?.on("data", keep)
    const running = () => process.exitCode === null && process.signalCode === null
    const failed = (what: string) => new BenchFailed({ message: `${program.name} ${what}. It wrote:\n${output}` })
    return {
      name: program.name,
      pid: process.pid ?? 0,
      running,
      lastWords: () => output,
      port: eventually(
        Effect.suspend(() => {
          if (!running()) return Effect.fail(failed("ended"))
          const port = /^(\d+)\n/.exec(output)?.[1]
          return Effect.succeed(port === undefined ? undefined : Number(port))
        }),
        () => failed("did not say its port in time")
      )
    }
  })

/** Asks until `url` answers with 200. */
export const ready = (child: Child, url: string): Effect.Effect<void, BenchFailed> =>
  Effect.asVoid(
    eventually(
      Effect.suspend(() =>
        child.running()
          ? Effect.promise(() =>
              fetch(url).then(
                (answer) => (answer.ok ? true : undefined),
                () => undefined
              )
            )
          : Effect.fail(new BenchFailed({ message: `${child.name} ended. It wrote:\n${child.lastWords()}` }))
      ),
      () => new BenchFailed({ message: `${child.name} was not ready in time. It wrote:\n${child.lastWords()}` })
    )
  )

/** Looks every 50 ms until something is there. */
export const eventually = <A, E>(look: Effect.Effect<A | undefined, E>, late: () => E): Effect.Effect<A, E> => {
  const again: Effect.Effect<A, E> = Effect.flatMap(look, (found) =>
    found === undefined ? Effect.andThen(Effect.sleep("50 millis"), again) : Effect.succeed(found)
  )
  return Effect.timeoutOrElse(again, { duration: startsWithin, orElse: () => Effect.fail(late()) })
}

/** A port that was free a moment ago. */
export const freePort: Effect.Effect<number> = Effect.callback((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = address !== null && typeof address === "object" ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

const spawned = ({
  args,
  command = process.execPath,
  env,
  folder,
  name
}: Program): Effect.Effect<ChildProcess, BenchFailed> =>
  Effect.callback((resume) => {
    const child = spawn(command, [...args], {
      cwd: folder,
      env: { PATH: process.env["PATH"], HOME: process.env["HOME"], NODE_ENV: "production", ...env },
      // over the channel a child learns that its parent is gone
      stdio: ["ignore", "pipe", "pipe", "ipc"]
    })
    child.once("spawn", () => resume(Effect.succeed(child)))
    child.once("error", ({ message }) => resume(Effect.fail(new BenchFailed({ message: `${name}: ${message}` }))))
  })

const end = (child: ChildProcess): Effect.Effect<void> =>
  Effect.promise(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, "exit")
    child.kill("SIGTERM")
    const timer = setTimeout(() => child.kill("SIGKILL"), endsWithinMs)
    await ended
    clearTimeout(timer)
  })

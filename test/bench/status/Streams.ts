import { connect, type Socket } from "node:net"
import { createHistogram } from "node:perf_hooks"
import { fileURLToPath } from "node:url"
import autocannon from "autocannon"
import { Effect } from "effect"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { event } from "../../status/Events.ts"
import { BenchFailed, eventually, start } from "../Child.ts"
import { residentMiB } from "../Footprint.ts"
import * as Latency from "../Latency.ts"
import { environment } from "../messaging/Work.ts"
import * as Hub from "./Hub.ts"

export interface Plan {
  readonly streams: number
  /** Published one after the other, each for another stream. */
  readonly events: number
  readonly everyMs: number
  /** Of each kind of request, one after the other. */
  readonly rounds: number
  readonly seconds: number
  readonly connections: number
}

export interface Measured {
  /** From the call that publishes an event, over the broker, the hub and Redis, to its last byte at the client. */
  readonly latency: { readonly p50: number; readonly p99: number }
  /** KiB of the server process for each stream, by what it grew while the streams were opened. */
  readonly memory: {
    readonly ofOwnTasks: number
    readonly ofOneTask: number
    /** Of streams that send one frame and know nothing of tasks. */
    readonly bare: number
  }
  readonly requests: Readonly<Record<Route, Rates>>
}

/** Requests per second in each round: of the route, and of handlers that give the same bytes. */
export interface Rates {
  readonly route: ReadonlyArray<number>
  /** Of one that asks Redis for them. */
  readonly bare: ReadonlyArray<number>
  /** Of one that has them. */
  readonly silent: ReadonlyArray<number>
}

export const routes = ["status", "history"] as const
export type Route = (typeof routes)[number]

const paths: Readonly<Record<Route, string>> = { status: "/status/task-1", history: "/history?task_id=task-1" }

/** Many open streams of as many tasks: a process that serves them, one with the hub, and this one as all their clients. */
export const measure = Effect.fnUntraced(function* (
  plan: Plan,
  nodeFlags: ReadonlyArray<string>,
  say: (line: string) => void
) {
  const { prefix, redis, topology } = yield* Hub.ground
  const tasks = Array.from({ length: plan.streams }, (_, index) => `task-${index}`)
  yield* Hub.hub(prefix, [])
  return yield* Effect.gen(function* () {
    const { publishStatus } = yield* BrokerClient
    const publish = (task: string, id: string) => publishStatus({ ...event(task, id), timestamp: undefined })
    yield* Effect.forEach(tasks, (task) => publish(task, "e0"), { concurrency: 50, discard: true })
    const alone = (path: (task: string) => string) =>
      Effect.map(
        Effect.scoped(Effect.flatMap(server(prefix, []), (server) => open(server, tasks.map(path)))),
        ({ kibPerStream }) => kibPerStream
      )
    say(`streams: ${plan.streams} of one frame, ${plan.streams} of one task, ${plan.streams} of a task each`)
    const bare = yield* alone((task) => `/bare-events/${task}`)
    const ofOneTask = yield* alone(() => "/events/task-0")
    const served = yield* server(prefix, nodeFlags)
    const { clients, kibPerStream } = yield* open(
      served,
      tasks.map((task) => `/events/${task}`)
    )
    const latency = yield* publishToClient(plan, tasks, clients, publish)
    for (const client of clients) client.close()
    say(`requests: ${plan.rounds} rounds`)
    const measured: Measured = {
      latency: { p50: Latency.ms(latency, 50), p99: Latency.ms(latency, 99) },
      memory: { ofOwnTasks: kibPerStream, ofOneTask, bare },
      requests: yield* requestRates(served.origin, plan, (name, answer) => redis.set(`${prefix}${name}`, answer))
    }
    return measured
  }).pipe(Effect.provide(BrokerClient.layer({ topology })))
}, Effect.scoped)

const server = (prefix: string, nodeFlags: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const child = yield* start({
      name: "the status server",
      args: [
        "--expose-gc",
        ...nodeFlags,
        fileURLToPath(new URL("StreamsServer.ts", import.meta.url)),
        environment.redis,
        prefix
      ]
    })
    return { pid: child.pid, origin: `http://127.0.0.1:${yield* child.port}` }
  })

const open = Effect.fnUntraced(function* (
  { origin, pid }: { readonly origin: string; readonly pid: number },
  paths: ReadonlyArray<string>
) {
  const collect = Effect.promise(() => fetch(`${origin}/gc`))
  yield* collect
  const before = residentMiB(pid)
  const clients = yield* Effect.acquireRelease(
    Effect.sync(() => paths.map((path) => new Client(origin, path))),
    (clients) =>
      Effect.sync(() => {
        for (const client of clients) client.close()
      })
  )
  yield* all(clients, 1)
  yield* collect
  return { clients, kibPerStream: ((residentMiB(pid) - before) * 1024) / paths.length }
})

const all = (clients: ReadonlyArray<Client>, events: number) =>
  eventually(
    Effect.sync(() => (clients.every((client) => client.events >= events) ? true : undefined)),
    () => new BenchFailed({ message: `not every stream was given ${events} events` })
  )

const publishToClient = Effect.fnUntraced(function* <E>(
  plan: Plan,
  tasks: ReadonlyArray<string>,
  clients: ReadonlyArray<Client>,
  publish: (task: string, id: string) => Effect.Effect<void, E>
) {
  const latency = createHistogram()
  for (let index = 0; index < plan.events; index++) {
    const at = index % clients.length
    clients[at]?.expect(performance.now(), (ms) => latency.record(Latency.nanos(ms)))
    // nobody waits for the broker to confirm it
    yield* Effect.forkChild(publish(tasks[at] ?? "", `e${index + 1}`), { startImmediately: true })
    yield* Effect.sleep(plan.everyMs)
  }
  yield* all(clients, 1 + Math.floor(plan.events / clients.length))
  return latency
})

/** The least that an event stream's client can be. */
class Client {
  events = 0
  readonly #socket: Socket
  #waiting: ((now: number) => void) | undefined

  constructor(origin: string, path: string) {
    const { hostname, port } = new URL(origin)
    this.#socket = connect(Number(port), hostname)
    this.#socket.write(`GET ${path} HTTP/1.1\r\nhost: bench\r\naccept: text/event-stream\r\n\r\n`)
    this.#socket.on("data", (bytes) => {
      const now = performance.now()
      // a frame of this size comes whole
      for (let at = bytes.indexOf(frame); at >= 0; at = bytes.indexOf(frame, at + 1)) {
        this.events++
        this.#waiting?.(now)
        this.#waiting = undefined
      }
    })
    this.#socket.on("error", () => {})
  }

  expect(since: number, seen: (ms: number) => void): void {
    this.#waiting = (now) => seen(now - since)
  }

  close(): void {
    this.#socket.destroy()
  }
}

const frame = "event: status"

const requestRates = Effect.fnUntraced(function* (
  origin: string,
  plan: Plan,
  keep: (name: string, answer: string) => Promise<unknown>
) {
  const rate = (path: string) => requestsPerSecond(`${origin}${path}`, plan)
  const measured = (route: Route) => ({
    path: paths[route],
    route: [0].slice(1),
    bare: [0].slice(1),
    silent: [0].slice(1)
  })
  const asked = { status: measured("status"), history: measured("history") }
  for (const route of routes) {
    yield* Effect.promise(async () => keep(route, await (await fetch(`${origin}${paths[route]}`)).text()))
    for (const path of [paths[route], `/bare/${route}`, `/silent/${route}`]) yield* rate(path)
  }
  for (let round = 0; round < plan.rounds; round++) {
    for (const name of routes) {
      const { bare, path, route, silent } = asked[name]
      route.push(yield* rate(path))
      bare.push(yield* rate(`/bare/${name}`))
      silent.push(yield* rate(`/silent/${name}`))
    }
  }
  return asked
})

const requestsPerSecond = (url: string, { connections, seconds }: Plan): Effect.Effect<number, BenchFailed> =>
  Effect.callback((resume) => {
    autocannon({ url, connections, duration: seconds }, (error, result) => {
      const failed = error ?? (result.non2xx + result.errors > 0 ? "not every request was answered" : undefined)
      resume(
        failed === undefined || failed === null
          ? Effect.succeed(result["2xx"] / result.duration)
          : Effect.fail(new BenchFailed({ message: `${url}: ${String(failed)}` }))
      )
    })
  })

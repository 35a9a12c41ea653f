import { randomBytes } from "node:crypto"
import { fileURLToPath } from "node:url"
import { Deferred, Effect, Exit, Schema } from "effect"
import { SharedTasksSharedStatusTopology } from "../../../src/messaging/topology/TaskTopology.ts"
import { declarations } from "../../../src/messaging/topology/Topology.ts"
import { Broker, type Publication } from "../../../src/services/Broker.ts"
import { unlinkKeys } from "../../UnlinkKeys.ts"
import { BenchFailed, eventually, start } from "../Child.ts"
import { cpuMicros, familyCpuMicros, listener } from "../Footprint.ts"
import { environment } from "../messaging/Work.ts"
import * as Store from "../Store.ts"

export const topologyOf = (prefix: string) =>
  new SharedTasksSharedStatusTopology({
    tasks_exchange: `${prefix}tasks`,
    tasks_queue: `${prefix}tasks`,
    tasks_routing_key: "",
    status_exchange: `${prefix}status`,
    status_queue: `${prefix}status`
  })

/** What the hub's process answers. Latencies in milliseconds, since the question before. */
export const Progress = Schema.Struct({
  stored: Schema.Int,
  cpuMicros: Schema.Finite,
  p50: Schema.Finite,
  p99: Schema.Finite
})
export type Progress = typeof Progress.Type
const decode = Schema.decodeUnknownSync(Progress)

/** Events per second that a hub has to keep up with. */
export const goal = 15_000
/** Tasks that run at once; they say something in turn. */
export const runningTasks = 200
export const eventsPerTask = 5
export const backlog = 150_000
/** Of those, stored before the measure begins: a hub that has just started runs uncompiled code. */
const warmUp = 30_000
/** The hub's own default. */
const prefetch = 200

/** At one rate of publishing, or without any. Processor times in microseconds per event. */
export interface Pace {
  readonly storedPerSecond: number
  /** Published and not stored when publishing ended. */
  readonly behind: number
  readonly p50: number
  readonly p99: number
  readonly cpu: { readonly hub: number; readonly redis: number; readonly broker: number; readonly load: number }
}

export interface Measured {
  readonly backlog: Pace
  /** Deliveries per second to a consumer that acknowledges them and does nothing else. */
  readonly broker: ReadonlyArray<number>
  readonly atGoal: Pace
  readonly atHalf: Pace
  /** At half of what was stored at the goal: what a machine without time for the goal sustains. */
  readonly atHalfOfStored: Pace
}

/** From publish to store: with a backlog that was there before, at the goal, at half of it, and of what it came to. */
export const measure = Effect.fnUntraced(function* (
  seconds: number,
  nodeFlags: ReadonlyArray<string>,
  say: (line: string) => void
) {
  const broker = yield* Broker
  const { exchange, prefix, queue } = yield* ground
  const servers = {
    redis: listener(portOf(environment.redis, 6_379)),
    broker: listener(portOf(environment.rabbitmq, 5_672))
  }
  const serverCpu = (pid: number | undefined) => (pid === undefined ? Number.NaN : familyCpuMicros(pid))
  let published = 0
  const publish = Effect.suspend(() => broker.publish(publicationOf(exchange, published++)))
  const many = (count: number) =>
    Effect.forEach(Array.from({ length: count }), () => publish, { concurrency: 256, discard: true })

  say(`hub: a backlog of ${backlog} events`)
  yield* many(backlog)
  const delivered: Array<number> = []
  for (let round = 0; round < 3; round++) delivered.push(yield* deliveriesPerSecond(broker, queue, backlog))

  const { child, port } = yield* hub(prefix, nodeFlags)
  const progress = Effect.tryPromise({
    try: async () => decode(await (await fetch(`http://127.0.0.1:${port}`)).json()),
    catch: (cause) => new BenchFailed({ message: `The hub does not answer: ${String(cause)}. ${child.lastWords()}` })
  })
  const drained = eventually(
    Effect.map(progress, (answer) => (answer.stored >= published ? answer : undefined)),
    () => new BenchFailed({ message: `The hub did not store ${published} events in time. ${child.lastWords()}` })
  )
  const look = Effect.map(progress, (answer) => ({
    ...answer,
    at: performance.now(),
    cpu: {
      hub: answer.cpuMicros,
      redis: serverCpu(servers.redis),
      broker: serverCpu(servers.broker),
      load: cpuMicros(process.pid)
    }
  }))
  type Look = Effect.Success<typeof look>
  const between = (before: Look, after: Look): Pace => {
    const stored = after.stored - before.stored
    return {
      storedPerSecond: (stored / (after.at - before.at)) * 1_000,
      behind: published - after.stored,
      p50: after.p50,
      p99: after.p99,
      cpu: {
        hub: (after.cpu.hub - before.cpu.hub) / stored,
        redis: (after.cpu.redis - before.cpu.redis) / stored,
        broker: (after.cpu.broker - before.cpu.broker) / stored,
        load: (after.cpu.load - before.cpu.load) / stored
      }
    }
  }
  const began = yield* eventually(
    Effect.map(look, (answer) => (answer.stored >= warmUp ? answer : undefined)),
    () => new BenchFailed({ message: `The hub does not begin. ${child.lastWords()}` })
  )
  yield* drained
  const drainedFrom = between(began, yield* look)

  const paced = Effect.fnUntraced(function* (rate: number) {
    say(`hub: ${rate} events per second`)
    // what was there before is none of its latencies
    const before = yield* look
    const from = published
    const since = performance.now()
    const due = () => Math.floor(((performance.now() - since) / 1_000) * rate) - (published - from)
    while (performance.now() - since < seconds * 1_000) {
      yield* Effect.forkChild(many(Math.max(due(), 0)), { startImmediately: true })
      yield* Effect.sleep("2 millis")
    }
    const pace = between(before, yield* look)
    yield* drained
    return pace
  })
  const atGoal = yield* paced(goal)
  const measured: Measured = {
    backlog: drainedFrom,
    broker: delivered,
    atGoal,
    atHalf: yield* paced(goal / 2),
    atHalfOfStored: yield* paced(Math.min(goal, Math.round(atGoal.storedPerSecond)) / 2)
  }
  return measured
}, Effect.scoped)

/** A hub in a process of its own, on the status plane of `prefix`. */
export const hub = Effect.fnUntraced(function* (prefix: string, nodeFlags: ReadonlyArray<string>) {
  const child = yield* start({
    name: "hub",
    args: [...nodeFlags, fileURLToPath(new URL("HubWorker.ts", import.meta.url))],
    env: { RABBITMQ_URL: environment.rabbitmq, REDIS_URL: environment.redis, BENCH_PREFIX: prefix }
  })
  return { child, port: yield* child.port }
})

/** A status plane of its own on the broker, and a part of Redis. Both are gone with the scope. */
export const ground = Effect.gen(function* () {
  const prefix = `svc-bench-${randomBytes(6).toString("hex")}:`
  const broker = yield* Broker
  const redis = yield* Store.redis
  const topology = topologyOf(prefix)
  const { exchanges, queues } = declarations(topology)
  const names = (all: ReadonlyArray<{ readonly name: string }>) => all.map(({ name }) => name)
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      Effect.ignore(broker.remove({ queues: names(queues), exchanges: names(exchanges) })),
      Effect.promise(() => unlinkKeys(redis, prefix))
    )
  )
  yield* broker.declare(topology)
  return { prefix, redis, topology, exchange: topology.status.exchange, queue: topology.status.queue }
})

const deliveriesPerSecond = Effect.fnUntraced(function* (broker: Broker["Service"], queue: string, count: number) {
  const done = Deferred.makeUnsafe<number>()
  let delivered = 0
  let since = 0
  yield* broker.consume({
    queue,
    prefetch,
    arguments: { "x-stream-offset": "first" },
    onDelivery: (delivery) => {
      if (delivered++ === 0) since = performance.now()
      delivery.settle("ack")
      if (delivered === count) Deferred.doneUnsafe(done, Exit.succeed((count / (performance.now() - since)) * 1_000))
    },
    onLost: () => {}
  })
  return yield* Deferred.await(done)
}, Effect.scoped)

const portOf = (url: string, otherwise: number): number => Number(new URL(url).port) || otherwise

export const publicationOf = (exchange: string, n: number): Publication => {
  const task = `task-${Math.floor(n / (runningTasks * eventsPerTask))}-${n % runningTasks}`
  const event = {
    task_id: task,
    status: "processing",
    timestamp: now(),
    message: "A page of the document was read, and what it says is kept.",
    meta: {
      step: Math.floor(n / runningTasks) % eventsPerTask,
      lineage: { task_type: "noop", attempt: 0, queue: "tasks" }
    },
    correlation_id: task,
    event_id: `event-${n.toString(16).padStart(26, "0")}`,
    service: "bench",
    spec_version: "1.0"
  }
  return {
    purpose: "statuses",
    exchange,
    routingKey: task,
    content: Buffer.from(JSON.stringify(event)),
    properties: { contentType: "application/json" }
  }
}

const now = (): string => {
  const at = performance.timeOrigin + performance.now()
  const micros = Math.floor((at % 1) * 1_000)
  return `${new Date(at).toISOString().slice(0, 23)}${String(micros).padStart(3, "0")}Z`
}

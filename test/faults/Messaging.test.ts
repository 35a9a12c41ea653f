import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Option, Redacted, Schema } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { end } from "../EndedProcess.ts"
import { eventually } from "../Eventually.ts"
import { letters } from "../messaging/Letters.ts"
import * as RabbitmqProcess from "../RabbitmqProcess.ts"
import * as TcpProxy from "../TcpProxy.ts"
import * as FaultyTasks from "./FaultyTasks.ts"
import * as SeededRandom from "./SeededRandom.ts"
import { Entry, judge, type Published } from "./TaskLedger.ts"

/**
 * How long faults go on; by default until each has happened once, which keeps the suite short. Another seed is another
 * order of them. What broke once is run again by
 *
 * ```sh
 * SVC_TEST_FAULT_SECONDS=120 SVC_TEST_FAULT_SEED=7 npm test -- test/faults/Messaging.test.ts
 * ```
 */
const faultSeconds = Number(process.env["SVC_TEST_FAULT_SECONDS"] ?? 0)
const seed = Number(process.env["SVC_TEST_FAULT_SEED"] ?? 1)

const timeout = 180_000 + 2_000 * faultSeconds

const workers = 3
const publishers = 8

/** For work to go on after a fault, and for everything to end: it only has to be sooner than never. */
const patience = "60 seconds"

describe.skipIf(!RabbitmqProcess.available)("tasks, workers and a RabbitMQ that fail under load", { timeout }, () => {
  it.live("every confirmed task is handled, dead-lettered or queued, and only what was in doubt comes twice", () =>
    Effect.gen(function* () {
      const server = yield* RabbitmqProcess.make()
      const target = { host: "127.0.0.1", port: server.port }
      const [theirs, ours] = yield* Effect.all([TcpProxy.make(target), TcpProxy.make(target)])
      const crew = yield* recruit(theirs)
      yield* Effect.gen(function* () {
        const load = yield* publishing
        yield* crew.complete
        yield* RabbitmqProcess.writtenDown

        const random = SeededRandom.of(seed)
        /** Of the broker's port opening, to the next delivery; milliseconds. */
        const returns: Array<number> = []
        const restarts: Array<number> = []
        const faults = {
          "broker killed": Effect.gen(function* () {
            yield* server.kill
            // so that what had arrived before is through
            yield* Effect.sleep(300 + 500 * random())
            restarts.push(yield* Clock.currentTimeMillis)
            yield* server.launch
            yield* server.open
            const openedAt = yield* Clock.currentTimeMillis
            returns.push((yield* crew.busy(openedAt)) - openedAt)
          }),
          "connections cut": Effect.suspend(() => {
            const proxy = SeededRandom.chosen(random, [theirs, ours])
            return Effect.andThen(proxy.cut, Effect.delay(proxy.restore, 1_000 * random()))
          }),
          "peer frozen": Effect.suspend(() => {
            const proxy = SeededRandom.chosen(random, [theirs, ours])
            // either side misses two heartbeats, or neither does
            return Effect.andThen(proxy.freeze, Effect.delay(proxy.thaw, SeededRandom.chosen(random, [500, 4_000])))
          }),
          "memory alarm": Effect.suspend(() =>
            Effect.andThen(
              server.control("set_vm_memory_high_watermark", "absolute", "1MB"),
              Effect.delay(server.control("set_vm_memory_high_watermark", "0.4"), 1_000 * random())
            )
          ),
          "worker killed": Effect.suspend(() => crew.replace(SeededRandom.integer(random, workers)))
        }
        const startedAt = yield* Clock.currentTimeMillis
        const happened: Array<string> = []
        do {
          for (const [name, fault] of SeededRandom.shuffled(random, Object.entries(faults))) {
            yield* fault
            happened.push(name)
            yield* crew.busy(yield* Clock.currentTimeMillis)
            yield* Effect.sleep(500 * random())
          }
        } while ((yield* Clock.currentTimeMillis) < startedAt + faultSeconds * 1_000)

        const published = yield* load.end
        const { inspectQueue } = yield* BrokerClient
        const waiting = [FaultyTasks.topology.tasks.queue, FaultyTasks.retryQueue]
        yield* eventually(
          Effect.forEach(waiting, (queue) => inspectQueue(queue)),
          (found) => found.every(emptied),
          patience
        )
        yield* crew.dismiss
        // what the last of them sent into its retry queue is counted where it ends
        yield* eventually(inspectQueue(FaultyTasks.retryQueue), emptied, patience)
        yield* eventually(server.deadLettering, (count) => count === 0, patience)
        const tasksIn = (queue: string) =>
          Effect.map(letters(queue), (all) => all.map(({ body }) => String(Object(body).task_id)))
        const entries = crew.entries()
        const verdict = judge({
          published,
          entries,
          dead: yield* tasksIn(FaultyTasks.deadLetterQueue),
          queued: (yield* Effect.forEach(waiting, tasksIn)).flat(),
          endOf: FaultyTasks.endOf,
          restarts
        })
        yield* Effect.logInfo(
          `seed ${seed}, ${happened.length} faults: ${happened.join(", ")}. ` +
            `Confirmed ${verdict.confirmed}, in doubt ${verdict.unknown}, handled ${verdict.handled}, ` +
            `dead-lettered ${verdict.dead}, queued ${verdict.queued}, lost ${verdict.lost.length}; ` +
            `duplicates ${verdict.duplicates} in doubt, of which ${verdict.waitedTwice} by a retry queue that was ` +
            `killed, and ${verdict.unexplained.length} others; ` +
            `consuming again ${returns.map(Math.round).join(", ")} ms after the port opened`
        )
        /** Of the first of them, everything that was written down. */
        const story = ([first = ""]: ReadonlyArray<string>) =>
          JSON.stringify({ restarts, entries: entries.filter(({ task }) => task === first.split(" ")[0]) })
        assert.deepStrictEqual(verdict.lost, [], story(verdict.lost))
        assert.deepStrictEqual(verdict.unexplained, [], story(verdict.unexplained))
        assert.deepStrictEqual(verdict.astray, [], story(verdict.astray))
        assert.deepStrictEqual(crew.crashed, [])
        assert.isAbove(verdict.handled, 100)
        assert.isAbove(verdict.dead, 0)
        for (const ms of returns) assert.isBelow(ms, 30_000)
      }).pipe(Effect.scoped, Effect.provide(deskThrough(ours)))
    }).pipe(Effect.scoped)
  )
})

const emptied = (found: Option.Option<{ readonly messages: number }>) =>
  Option.exists(found, ({ messages }) => messages === 0)

const urlThrough = ({ port }: TcpProxy.TcpProxy) => `amqp://guest:guest@127.0.0.1:${port}`

const deskThrough = (proxy: TcpProxy.TcpProxy) =>
  Layer.provideMerge(
    BrokerClient.layer({ topology: FaultyTasks.topology }),
    BrokerAmqp.layer({
      url: Redacted.make(urlThrough(proxy)),
      name: "fault-publisher",
      heartbeatSeconds: 1,
      connectWithin: "20 seconds",
      publishWithin: "5 seconds",
      closeWithin: "500 millis"
    })
  )

/** Publishes task after task until it is told to end; each until it is confirmed, as somebody would who means it. */
const publishing = Effect.gen(function* () {
  const { initialize, publishTask } = yield* BrokerClient
  yield* initialize
  const published = new Map<string, Published>()
  let isOn = true
  let next = 0
  const one = Effect.gen(function* () {
    const task = FaultyTasks.taskOf(next++)
    let doubtful = false
    for (;;) {
      published.set(task, { confirmed: false, doubtful: true })
      const outcome = yield* Effect.result(publishTask({ task_id: task }))
      if (outcome._tag === "Success") break
      doubtful ||= outcome.failure._tag === "PublishUnknown"
      yield* Effect.sleep("50 millis")
    }
    published.set(task, { confirmed: true, doubtful })
    yield* Effect.sleep("20 millis")
  })
  const running = yield* Effect.forkScoped(
    Effect.forEach(Array.from({ length: publishers }), () => Effect.repeat(one, { while: () => isOn }), {
      concurrency: "unbounded",
      discard: true
    })
  )
  const end = Effect.suspend(() => {
    isOn = false
    return Effect.as(Effect.timeout(Fiber.join(running), patience), published)
  })
  return { end }
})

/** Worker processes, each with a journal that outlives it. */
const recruit = Effect.fnUntraced(function* (proxy: TcpProxy.TcpProxy) {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "svc-faults-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true }))
  )
  const journals: Array<string> = []
  const atWork: Array<{ readonly child: ChildProcess; readonly journal: string }> = []
  /** How those ended whom nobody had killed. */
  const crashed: Array<string> = []
  const start = () => {
    const journal = join(directory, `worker-${journals.length}`)
    journals.push(journal)
    const child = spawn(process.execPath, [program, urlThrough(proxy), journal], {
      cwd: root,
      stdio: ["ignore", "ignore", "inherit"]
    })
    child.once("exit", (code, signal) => {
      if (!child.killed) crashed.push(`${journal} ended with ${code ?? signal}`)
    })
    return { child, journal }
  }
  yield* Effect.addFinalizer(() => Effect.forEach(atWork, ({ child }) => end(child, "SIGKILL"), { discard: true }))
  for (let n = 0; n < workers; n++) atWork.push(start())

  const entries = () => journals.flatMap(entriesOf)
  /** When the first task was received, at that time or later. */
  const busy = (from: number) =>
    eventually(
      Effect.sync(() => Math.min(...atWork.flatMap(({ journal }) => receivedFrom(journal, from)))),
      Number.isFinite,
      patience
    )
  /** It has its connection, and its part of the work. */
  const joined = ({ journal }: { readonly journal: string }) =>
    eventually(
      Effect.sync(() => receivedFrom(journal, 0).length),
      (count) => count > 0,
      patience
    )
  return {
    crashed,
    entries,
    busy,
    /** Everybody has received something. */
    complete: Effect.forEach(atWork, joined, { discard: true }),
    replace: (n: number) =>
      Effect.gen(function* () {
        const one = atWork[n]
        if (one !== undefined) yield* end(one.child, "SIGKILL")
        const next = start()
        atWork[n] = next
        yield* joined(next)
      }),
    dismiss: Effect.suspend(() =>
      Effect.forEach(atWork, ({ child }) => end(child, "SIGTERM"), { concurrency: "unbounded", discard: true })
    )
  }
})

const root = fileURLToPath(new URL("../..", import.meta.url))
const program = fileURLToPath(new URL("FaultWorker.ts", import.meta.url))

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Entry))

const entriesOf = (journal: string): ReadonlyArray<Entry> =>
  linesOf(journal, Number.POSITIVE_INFINITY).map((line) => decode(line))

/** Much more than is written between two looks. */
const recentBytes = 16_384

const receivedFrom = (journal: string, from: number): ReadonlyArray<number> =>
  linesOf(journal, recentBytes)
    .map((line) => decode(line))
    .flatMap((entry) => (entry._tag === "Received" && entry.at >= from ? [entry.at] : []))

/** Whole lines alone: the first one of the end of a file may be cut, and the last one may be on its way. */
const linesOf = (journal: string, bytes: number): ReadonlyArray<string> => {
  const file = openSync(journal, "a+")
  try {
    const { size } = fstatSync(file)
    const length = Math.min(size, bytes)
    const end = Buffer.alloc(length)
    readSync(file, end, 0, length, size - length)
    return end
      .toString()
      .split("\n")
      .slice(length < size ? 1 : 0, -1)
  } finally {
    closeSync(file)
  }
}

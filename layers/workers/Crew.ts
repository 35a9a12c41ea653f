import { Clock, Data, Deferred, Duration, Effect, Exit, Option, Schedule, Scope } from "effect"
import { afterEnd, crashLoop, type Decision, describeEnd, type UnexpectedEnd } from "./Decisions.ts"
import type { Serving, Slot } from "./Slot.ts"
import type { WorkerEnd, WorkerProcess, WorkerProcesses } from "./WorkerProcesses.ts"

/** All workers of the program. */
export interface Crew {
  readonly slots: ReadonlyArray<Slot>
  readonly processes: WorkerProcesses["Service"]
  /** The processes end with this scope. */
  readonly scope: Scope.Scope
  /** Ends the program. */
  readonly stop: (decision: Extract<Decision, { readonly _tag: "Stop" }>) => Effect.Effect<unknown>
  /** Runs when a worker begins to serve. */
  readonly onServing: Effect.Effect<void>
  haveServed: boolean
}

class Crashed extends Data.TaggedError("Crashed") {}

/** A worker ended before its listeners were open. */
class EndedEarly extends Data.TaggedError("EndedEarly")<{ readonly end: WorkerEnd; readonly wasSilent: boolean }> {}

/** The delay before the replacement of a worker that has crashed soon after its start, from crash to crash. */
const backOff = Schedule.min([Schedule.exponential("250 millis"), Schedule.spaced("30 seconds")])

/** Keeps a slot filled. After a worker that has served for long, the delays begin anew. */
export const keep = (crew: Crew, slot: Slot): Effect.Effect<never> =>
  Effect.forever(Effect.ignore(Effect.retry(occupy(crew, slot), backOff)))

/** Fills a slot, and waits until its worker ends or is replaced. Fails if the next worker has to wait. */
const occupy = Effect.fnUntraced(function* (crew: Crew, slot: Slot) {
  yield* slot.starting
    .withPermit(Effect.suspend(() => (slot.current === undefined ? fill(crew, slot) : Effect.void)))
    .pipe(
      Effect.catchTag("EndedEarly", ({ end, wasSilent }) =>
        onUnexpectedEnd(crew, slot, { number: slot.number, end, wasSilent, served: Option.none() })
      )
    )
  const { current } = slot
  if (current === undefined) return
  const ended = Effect.map(endOf(current.process, current.process.readiness), Option.some)
  const end = yield* Effect.raceFirst(ended, Effect.as(Deferred.await(current.replaced), Option.none()))
  if (Option.isNone(end) || slot.current !== current) return
  slot.current = undefined
  yield* Scope.close(current.scope, Exit.void)
  const served = Duration.millis((yield* Clock.currentTimeMillis) - current.since)
  yield* onUnexpectedEnd(crew, slot, { number: slot.number, ...end.value, served: Option.some(served) })
})

/** Starts a process and makes it the worker of the slot once it serves. */
const fill = Effect.fnUntraced(function* (crew: Crew, slot: Slot) {
  const scope = yield* Scope.fork(crew.scope)
  const process = yield* Scope.provide(crew.processes.start(slot.number), scope)
  const ended = Effect.map(endOf(process, process.alive), Option.some)
  const end = yield* Effect.raceFirst(Effect.as(process.ready, Option.none()), ended)
  if (Option.isSome(end)) {
    yield* Scope.close(scope, Exit.void)
    return yield* new EndedEarly(end.value)
  }
  const since = yield* Clock.currentTimeMillis
  slot.current = { process, scope, since, replaced: yield* Deferred.make<void>() }
  crew.haveServed = true
  yield* Effect.logInfo("Worker serves", { worker: slot.number, pid: process.pid })
  yield* crew.onServing
})

/** A process that misses this many heartbeats in a row hangs. The suspension of the whole machine costs only one. */
const heartbeat = { interval: "10 seconds", timeout: "10 seconds", missed: 6 } as const

/** Waits for the end of a process. A process that hangs, so that it does not answer the question, is killed. */
const endOf = Effect.fnUntraced(function* (process: WorkerProcess, question: Effect.Effect<unknown>) {
  let wasSilent = false
  const kill = Effect.suspend(() => {
    wasSilent = true
    return process.kill
  })
  const killed = silenceTo(question).pipe(Effect.andThen(kill), Effect.andThen(Effect.never))
  const end = yield* Effect.raceFirst(process.ended, killed)
  return { end, wasSilent }
})

const silenceTo = (question: Effect.Effect<unknown>) =>
  Effect.timeout(question, heartbeat.timeout).pipe(
    Effect.retry({ times: heartbeat.missed - 1 }),
    Effect.delay(heartbeat.interval),
    Effect.forever,
    Effect.flip
  )

const onUnexpectedEnd = Effect.fnUntraced(function* (crew: Crew, slot: Slot, unexpected: UnexpectedEnd) {
  const decision = afterEnd(unexpected, {
    serve: crew.slots.some(({ current }) => current !== undefined),
    haveServed: crew.haveServed
  })
  if (decision._tag === "Stop") return yield* Effect.andThen(crew.stop(decision), Effect.never)
  slot.restarts[unexpected.wasSilent ? "silence" : "crash"]++
  slot.crashes = decision._tag === "Replace" ? 0 : slot.crashes + 1
  const message = slot.crashes < crashLoop ? "Worker is replaced" : "Worker crashes again and again"
  yield* Effect.logError(message, { worker: slot.number, crashes: slot.crashes, reason: describeEnd(unexpected) })
  if (decision._tag === "BackOff") return yield* new Crashed()
})

/**
 * Starts a second process for the slot. When that one serves, the first one leaves, and ends with its last request. An
 * empty slot is filled by `keep`.
 */
export const replace = Effect.fnUntraced(function* (crew: Crew, slot: Slot) {
  const old = yield* slot.starting.withPermit(takeOver(crew, slot))
  if (old === undefined) return
  slot.restarts.restart++
  slot.retiring = old.process
  yield* old.process.retire
  slot.retiring = undefined
  yield* Scope.close(old.scope, Exit.void)
})

const takeOver = Effect.fnUntraced(function* (crew: Crew, slot: Slot) {
  const old: Serving | undefined = slot.current
  if (old === undefined) return undefined
  yield* fill(crew, slot)
  yield* Deferred.succeed(old.replaced, undefined)
  return old
})

/** Replaces one worker after another. */
export const restart = (crew: Crew): Effect.Effect<void> =>
  Effect.logInfo("The workers restart one after another").pipe(
    Effect.andThen(Effect.forEach(crew.slots, (slot) => replace(crew, slot), { discard: true })),
    Effect.andThen(Effect.logInfo("All workers have restarted")),
    Effect.catchTag("EndedEarly", ({ end }) =>
      Effect.logError("The restart ends, because a new worker failed: the others go on", {
        status: end.status,
        sentence: Option.getOrUndefined(end.sentence)
      })
    )
  )

import { Cause, Clock, Context, Data, Duration, Effect, Fiber, Layer, Random, References } from "effect"
import { TestClock } from "effect/testing"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { Broker } from "../../src/services/Broker.ts"
import { Redis } from "../../src/services/Redis.ts"
import * as BrokerMemory from "../BrokerMemory.ts"
import * as RedisMemory from "../RedisMemory.ts"
import { causeText } from "./CauseText.ts"
import { type Check, defaults } from "./Check.ts"
import { recorded } from "./FaultyBroker.ts"
import { History } from "./History.ts"
import * as Quiescence from "./Quiescence.ts"
import type { Fault, Operation, Schedule } from "./Schedule.ts"
import * as Settled from "./Settled.ts"
import { turns } from "./Turns.ts"
import * as Workers from "./Workers.ts"

/**
 * Why a run failed.
 *
 * - `invariant`: the invariant failed. `said` is the text of its error.
 * - `unsettled`: the worker had not settled at the deadline. `said` names what waits, one line each.
 * - `setup`: the world, the worker's layer or the publish of the tasks failed.
 * - `unrepeatable`: a second run of the same schedule took another course. `said` names the first difference.
 */
export class RunFailure extends Data.TaggedError("RunFailure")<{
  readonly reason: "invariant" | "unsettled" | "setup" | "unrepeatable"
  readonly said: string
  /** The error of the invariant or of the setup. */
  readonly cause?: unknown
}> {}

export interface Finished {
  readonly schedule: Schedule
  readonly operations: ReadonlyArray<Operation>
  readonly struck: ReadonlyArray<{ readonly fault: Fault; readonly operation: Operation }>
  readonly failure: RunFailure | undefined
}

export interface FailedRun extends Finished {
  readonly failure: RunFailure
}

export const hasFailed = (finished: Finished): finished is FailedRun => finished.failure !== undefined

/** The real time that one turn of the worker may take. A shorter limit makes runs on a busy machine differ. */
const longestTurn = "10 seconds"

/** Runs the worker under one schedule, with a broker, a Redis, a world and a clock of its own. */
export const run = <World, WorldError, WorkerError, InvariantError>(
  check: Check<World, WorldError, WorkerError, InvariantError>,
  schedule: Schedule
): Effect.Effect<Finished> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const history = new History(schedule, () => clock.currentTimeMillisUnsafe())
    const failure = yield* play(check, history, clock).pipe(
      Effect.as(undefined),
      Effect.catchTag("RunFailure", (failure) => Effect.succeed(failure)),
      Effect.scoped
    )
    return { schedule, operations: history.operations, struck: history.struck, failure }
  }).pipe(
    Effect.provide(TestClock.layer({ warningDelay: longestTurn })),
    Random.withSeed(schedule.seed),
    // Most runs fail on purpose. Their log lines would hide the result.
    Effect.provideService(References.MinimumLogLevel, "None")
  )

const play = Effect.fnUntraced(function* <World, WorldError, WorkerError, InvariantError>(
  check: Check<World, WorldError, WorkerError, InvariantError>,
  history: History,
  clock: Clock.Clock
) {
  const { topology } = check
  const scope = yield* Effect.scope
  const build = <A, E, R>(layer: Layer.Layer<A, E, R>) =>
    Layer.buildWithMemoMap(layer, Layer.makeMemoMapUnsafe(), scope)
  const server = yield* BrokerMemory.makeServer()
  const broker = recorded(yield* setUp("The broker", server.connect({ name: "test kit" })), history)
  const client = yield* Effect.provideService(BrokerClient.make({ topology }), Broker, broker)
  const redis = Context.get(yield* build(RedisMemory.layer()), Redis)
  const world = yield* setUp("The world could not be built", build(check.world))
  yield* setUp("The topology could not be declared", client.initialize)
  const publishing = Effect.isEffect(check.tasks)
    ? check.tasks
    : Effect.forEach(check.tasks, (task) => client.publishTask(task), { discard: true })
  yield* setUp("The tasks could not be published", Effect.provideService(publishing, BrokerClient, client))

  const workers = yield* Workers.start({ broker, check, clock, history, redis, server, world })
  const waiting = yield* Quiescence.settle({
    broker,
    history,
    workers,
    statusQueue: topology.status.queue,
    deadline: Duration.fromInputUnsafe(check.deadline ?? defaults.deadline)
  }).pipe(Effect.orDie)
  const broken = workers.failure()
  if (broken !== undefined) return yield* new RunFailure({ reason: "setup", said: broken })
  if (waiting.length > 0) return yield* new RunFailure({ reason: "unsettled", said: waiting.join("\n") })

  const settled = yield* Effect.orDie(Settled.read(broker, topology, history.queues.values()))
  const services = Context.make(Broker, broker).pipe(Context.add(Redis, redis), Context.add(BrokerClient, client))
  const invariant = Effect.suspend(() => check.invariant(settled)).pipe(
    Effect.provideContext(Context.merge(world, services)),
    Effect.catchCause((cause) =>
      Effect.fail(new RunFailure({ reason: "invariant", said: causeText(cause), cause: Cause.squash(cause) }))
    )
  )
  yield* withPassingTime(invariant)
})

const setUp = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, RunFailure, R> =>
  Effect.catchCause(withPassingTime(effect), (cause) =>
    Effect.fail(new RunFailure({ reason: "setup", said: `${what}: ${causeText(cause)}`, cause: Cause.squash(cause) }))
  )

/** Lets an hour pass if the effect waits for virtual time. */
const withPassingTime = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
    yield* turns(() => (fiber.pollUnsafe() === undefined ? 0 : 1))
    if (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("1 hour")
    return yield* Fiber.join(fiber)
  })

import { Clock, Context, Duration, Effect, Exit, Layer, Scope } from "effect"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { Broker, type Delivery } from "../../src/services/Broker.ts"
import { Redis } from "../../src/services/Redis.ts"
import type { BrokerServer } from "../BrokerMemory.ts"
import { causeText } from "./CauseText.ts"
import { type Check, defaults } from "./Check.ts"
import * as FaultyBroker from "./FaultyBroker.ts"
import * as FaultyRedis from "./FaultyRedis.ts"
import type { History } from "./History.ts"
import { CurrentWorker } from "./Step.ts"
import { type Surroundings, WorkerProcess } from "./WorkerProcess.ts"

interface Setting<World, WorldError, WorkerError, InvariantError> {
  readonly check: Check<World, WorldError, WorkerError, InvariantError>
  readonly server: BrokerServer["Service"]
  /** The connection of the test kit. No fault strikes it. */
  readonly broker: Broker["Service"]
  readonly redis: Redis["Service"]
  readonly world: Context.Context<World>
  readonly history: History
  readonly clock: Clock.Clock
}

export interface Workers {
  /** The processes that have not crashed. */
  readonly alive: () => ReadonlyArray<WorkerProcess>
  /** The processes whose layers are not built yet. */
  readonly starting: () => ReadonlyArray<WorkerProcess>
  /** Why a worker could not be built. */
  readonly failure: () => string | undefined
}

/** The time after which another worker replaces one that has crashed. */
const restartDelay = "1 second"

/** Starts the workers, and a new one for each that crashes. */
export const start = Effect.fnUntraced(function* <World, WorldError, WorkerError, InvariantError>({
  broker: kit,
  check,
  clock,
  history,
  redis,
  server,
  world
}: Setting<World, WorldError, WorkerError, InvariantError>) {
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const fork = (effect: Effect.Effect<unknown>) => void runFork(effect)
  const count = check.workers ?? defaults.workers
  const processes: Array<WorkerProcess> = []
  const starting = new Set<WorkerProcess>()
  const layerScopes: Array<Scope.Closeable> = []
  let failure: string | undefined

  const open = Effect.fnUntraced(function* (name: string) {
    const connected = yield* Scope.make()
    const built = yield* Scope.make()
    const surroundings: Surroundings = {
      history,
      fork,
      delay: Duration.fromInputUnsafe(check.delay ?? defaults.delay),
      disconnect: ({ connection }) => fork(server.drop(connection)),
      onCrash: (worker) => {
        starting.delete(worker)
        fork(Scope.close(connected, Exit.void))
        fork(Effect.delay(open(name), restartDelay))
      },
      copyToEnd: (delivery) => copyToEnd(kit, delivery)
    }
    const worker = new WorkerProcess(name, `process ${processes.length + 1}`, surroundings)
    processes.push(worker)
    starting.add(worker)
    layerScopes.push(built)
    const build = Effect.gen(function* () {
      const connection = yield* Scope.provide(server.connect({ name: worker.connection }), connected)
      const broker = FaultyBroker.make(FaultyBroker.recorded(connection, history), worker, history)
      const services = Context.make(Broker, broker).pipe(
        Context.add(Redis, FaultyRedis.make(redis, worker)),
        Context.add(CurrentWorker, worker),
        Context.add(Clock.Clock, { ...clock, sleep: (duration) => worker.alive(clock.sleep(duration)) })
      )
      yield* Effect.gen(function* () {
        const client = yield* BrokerClient.make({ topology: check.topology })
        const building = Layer.buildWithMemoMap(check.worker, Layer.makeMemoMapUnsafe(), built)
        yield* Effect.provideService(building, BrokerClient, client)
      }).pipe(Effect.provideContext(Context.merge(world, services)))
    })
    yield* Effect.catchCause(build, (cause) =>
      Effect.sync(() => {
        failure ??= `The layer of ${name} failed: ${causeText(cause)}`
      })
    )
    starting.delete(worker)
  })

  for (let slot = 1; slot <= count; slot++) fork(open(count === 1 ? "the worker" : `worker ${slot}`))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      history.isOver = true
      for (const worker of processes) worker.isDead = true
      // The worker has no more time, so its finalizers must not hold up the next run.
      for (const built of layerScopes) fork(Scope.close(built, Exit.void))
    })
  )
  return {
    alive: () => processes.filter(({ isDead }) => !isDead),
    starting: () => Array.from(starting),
    failure: () => failure
  } satisfies Workers
})

const copyToEnd = (kit: Broker["Service"], { content, properties, queue }: Delivery): Effect.Effect<void> => {
  const { headers = {}, ...others } = properties
  const own = Object.fromEntries(Object.entries(headers).filter(([name]) => !ofBroker.has(name)))
  return Effect.asVoid(
    kit.publish({
      purpose: "tasks",
      exchange: "",
      routingKey: queue,
      content,
      properties: { ...others, headers: own }
    })
  )
}

/** Headers that the broker adds to a delivery. */
const ofBroker: ReadonlySet<string> = new Set(["x-delivery-count", "x-stream-offset"])

import { Context, Effect, Layer, Queue, Stream } from "effect"
import { RedisError } from "../../src/services/Redis.ts"
import { StatusStore } from "../../src/status/store/StatusStore.ts"

/** What goes wrong between a program and its store, on demand. */
export class Faults extends Context.Service<
  Faults,
  {
    /** Every subscription fails, as when its connection is lost. */
    readonly cut: Effect.Effect<void>
    /** Whether reads and new subscriptions fail. */
    down: boolean
    /** Subscriptions that are open. */
    readonly subscriptions: () => number
  }
>()("test/Faults") {}

const gone = (operation: RedisError["operation"]) =>
  new RedisError({ operation, retryable: true, cause: new Error("the test took it away") })

const make = Effect.gen(function* () {
  const store = yield* StatusStore
  const open = new Set<Queue.Queue<never, RedisError>>()
  const faults = {
    down: false,
    subscriptions: () => open.size,
    cut: Effect.suspend(() =>
      Effect.forEach([...open], (ends) => Queue.fail(ends, gone("subscribe")), { discard: true })
    )
  }
  const faulty = StatusStore.of({
    ...store,
    history: (taskId, options) =>
      Effect.suspend(() => (faults.down ? Effect.fail(gone("command")) : store.history(taskId, options))),
    latest: (taskId) => Effect.suspend(() => (faults.down ? Effect.fail(gone("command")) : store.latest(taskId))),
    live: (taskId) =>
      Effect.gen(function* () {
        if (faults.down) return yield* gone("subscribe")
        const events = yield* store.live(taskId)
        const ends = yield* Effect.acquireRelease(
          Effect.tap(Queue.unbounded<never, RedisError>(), (ends) => Effect.sync(() => open.add(ends))),
          (ends) => Effect.sync(() => open.delete(ends))
        )
        return Stream.merge(events, Stream.fromQueue(ends))
      })
  })
  return Context.make(Faults, faults).pipe(Context.add(StatusStore, faulty))
})

/** The store below, with faults. */
export const layer: Layer.Layer<Faults | StatusStore, never, StatusStore> = Layer.effectContext(make)

import { Effect, type Fiber, FiberSet, Option, Random, type Scope, Stream } from "effect"
import type { StatusStore, StoredStatus } from "../store/StatusStore.ts"

/** Receives the events of a task. The callbacks run synchronously for all subscribers, so they must be fast. */
export interface TaskSubscriber {
  readonly onEvent: (event: StoredStatus) => void
  readonly onMalformed: () => void
  /** Called when the subscription becomes active, for the first time or again. Earlier events are in the history. */
  readonly onSubscribed: () => void
  readonly onDisconnected: () => void
}

interface TaskSubscriptions {
  /** Subscribes to a task and returns a function that ends this subscription. */
  readonly subscribe: (taskId: string, subscriber: TaskSubscriber) => () => void
}

interface SubscribedTask {
  readonly subscribers: Set<TaskSubscriber>
  state: "opening" | "listening" | "disconnected"
  fiber: Fiber.Fiber<void> | undefined
}

/** Shares one Redis subscription per task among all streams of this process. Renews a subscription that was lost. */
export const make = (live: StatusStore["Service"]["live"]): Effect.Effect<TaskSubscriptions, never, Scope.Scope> =>
  Effect.gen(function* () {
    const tasks = new Map<string, SubscribedTask>()
    const run = yield* FiberSet.makeRuntime<never, void>()

    const listen = (taskId: string, task: SubscribedTask) => {
      let failures = 0
      const subscription = Effect.gen(function* () {
        const events = yield* Effect.timeout(live(taskId), subscribeTimeout)
        failures = 0
        task.state = "listening"
        for (const subscriber of task.subscribers) subscriber.onSubscribed()
        yield* Stream.runForEachArray(events, (batch) =>
          Effect.sync(() => {
            for (const event of batch) {
              for (const subscriber of task.subscribers) {
                if (Option.isSome(event)) subscriber.onEvent(event.value)
                else subscriber.onMalformed()
              }
            }
          })
        )
      })
      return Effect.scoped(subscription).pipe(
        Effect.exit,
        Effect.andThen(
          Effect.gen(function* () {
            task.state = "disconnected"
            for (const subscriber of task.subscribers) subscriber.onDisconnected()
            const pauseMs = Math.min(firstPauseMs * 2 ** failures++, longestPauseMs)
            yield* Effect.sleep(pauseMs * (0.5 + (yield* Random.next) / 2))
          })
        ),
        Effect.forever
      )
    }

    return {
      subscribe: (taskId, subscriber) => {
        const task = tasks.get(taskId) ?? { subscribers: new Set(), state: "opening", fiber: undefined }
        task.subscribers.add(subscriber)
        if (task.fiber === undefined) {
          tasks.set(taskId, task)
          task.fiber = run(listen(taskId, task))
        } else if (task.state === "listening") subscriber.onSubscribed()
        else if (task.state === "disconnected") subscriber.onDisconnected()
        return () => {
          if (!task.subscribers.delete(subscriber) || task.subscribers.size > 0) return
          tasks.delete(taskId)
          task.fiber?.interruptUnsafe()
        }
      }
    }
  })

const subscribeTimeout = "10 seconds"

/** The pause before the first attempt to subscribe again. Up to half of each pause is randomly subtracted. */
const firstPauseMs = 100
const longestPauseMs = 5_000

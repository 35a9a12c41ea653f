import { Effect, type Fiber, FiberSet, Option, Random, type Scope, Stream } from "effect"
import type { StatusStore, StoredStatus } from "../store/StatusStore.ts"

/** Somebody who hears of a task's events. Called between other things: plain, and quick. */
export interface TaskSubscriber {
  readonly onEvent: (event: StoredStatus) => void
  /** Somebody published what is no event. */
  readonly onMalformed: () => void
  /** Listening, from now on or again: what was stored before is in the history. */
  readonly onSubscribed: () => void
  /** Events are not heard at present. */
  readonly onDisconnected: () => void
}

export interface TaskSubscriptions {
  /** Answers how to leave. Whoever leaves last ends the subscription. */
  readonly subscribe: (taskId: string, follower: TaskSubscriber) => () => void
  /** Tasks that are followed. */
  readonly size: () => number
}

interface SubscribedTask {
  readonly subscribers: Set<TaskSubscriber>
  state: "opening" | "listening" | "disconnected"
  fiber: Fiber.Fiber<void> | undefined
}

/** One subscription for a task, however many follow it here: it is renewed for as long as somebody does. */
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
        for (const follower of task.subscribers) follower.onSubscribed()
        yield* Stream.runForEachArray(events, (batch) =>
          Effect.sync(() => {
            for (const event of batch) {
              for (const follower of task.subscribers) {
                if (Option.isSome(event)) follower.onEvent(event.value)
                else follower.onMalformed()
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
            for (const follower of task.subscribers) follower.onDisconnected()
            const pauseMs = Math.min(firstPauseMs * 2 ** failures++, longestPauseMs)
            yield* Effect.sleep(pauseMs * (0.5 + (yield* Random.next) / 2))
          })
        ),
        Effect.forever
      )
    }

    return {
      subscribe: (taskId, follower) => {
        const task = tasks.get(taskId) ?? { subscribers: new Set(), state: "opening", fiber: undefined }
        task.subscribers.add(follower)
        if (task.fiber === undefined) {
          tasks.set(taskId, task)
          task.fiber = run(listen(taskId, task))
        } else if (task.state === "listening") follower.onSubscribed()
        else if (task.state === "disconnected") follower.onDisconnected()
        return () => {
          if (!task.subscribers.delete(follower) || task.subscribers.size > 0) return
          tasks.delete(taskId)
          task.fiber?.interruptUnsafe()
        }
      },
      size: () => tasks.size
    }
  })

const subscribeTimeout = "10 seconds"

/** Between two subscriptions: half of it to all of it. */
const firstPauseMs = 100
const longestPauseMs = 5_000

import { Effect, type Fiber, FiberSet, Option, Random, type Scope, Stream } from "effect"
import type { StatusStore, StoredStatus } from "../store/StatusStore.ts"

/** Somebody who hears of a task's events. Called between other things: plain, and quick. */
export interface Follower {
  readonly heard: (event: StoredStatus) => void
  /** Somebody published what is no event. */
  readonly misheard: () => void
  /** Listening, from now on or again: what was stored before is in the history. */
  readonly listening: () => void
  /** Events are not heard at present. */
  readonly deaf: () => void
}

export interface StatusFollows {
  /** Answers how to leave. Whoever leaves last ends the subscription. */
  readonly join: (taskId: string, follower: Follower) => () => void
  /** Tasks that are followed. */
  readonly size: () => number
}

interface Followed {
  readonly followers: Set<Follower>
  state: "opening" | "listening" | "deaf"
  fiber: Fiber.Fiber<void> | undefined
}

/** One subscription for a task, however many follow it here: it is renewed for as long as somebody does. */
export const make = (live: StatusStore["Service"]["live"]): Effect.Effect<StatusFollows, never, Scope.Scope> =>
  Effect.gen(function* () {
    const tasks = new Map<string, Followed>()
    const run = yield* FiberSet.makeRuntime<never, void>()

    const listen = (taskId: string, followed: Followed) => {
      let failures = 0
      const subscription = Effect.gen(function* () {
        const events = yield* Effect.timeout(live(taskId), subscribedWithin)
        failures = 0
        followed.state = "listening"
        for (const follower of followed.followers) follower.listening()
        yield* Stream.runForEachArray(events, (heard) =>
          Effect.sync(() => {
            for (const event of heard) {
              for (const follower of followed.followers) {
                if (Option.isSome(event)) follower.heard(event.value)
                else follower.misheard()
              }
            }
          })
        )
      })
      return Effect.scoped(subscription).pipe(
        Effect.exit,
        Effect.andThen(
          Effect.gen(function* () {
            followed.state = "deaf"
            for (const follower of followed.followers) follower.deaf()
            const pauseMs = Math.min(firstPauseMs * 2 ** failures++, longestPauseMs)
            yield* Effect.sleep(pauseMs * (0.5 + (yield* Random.next) / 2))
          })
        ),
        Effect.forever
      )
    }

    return {
      join: (taskId, follower) => {
        const followed = tasks.get(taskId) ?? { followers: new Set(), state: "opening", fiber: undefined }
        followed.followers.add(follower)
        if (followed.fiber === undefined) {
          tasks.set(taskId, followed)
          followed.fiber = run(listen(taskId, followed))
        } else if (followed.state === "listening") follower.listening()
        else if (followed.state === "deaf") follower.deaf()
        return () => {
          if (!followed.followers.delete(follower) || followed.followers.size > 0) return
          tasks.delete(taskId)
          followed.fiber?.interruptUnsafe()
        }
      },
      size: () => tasks.size
    }
  })

const subscribedWithin = "10 seconds"

/** Between two subscriptions: half of it to all of it. */
const firstPauseMs = 100
const longestPauseMs = 5_000

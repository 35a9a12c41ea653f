import { randomUUID } from "node:crypto"
import { Effect, type Scope } from "effect"
import * as LogThrottle from "../services/LogThrottle.ts"
import { Redis } from "../services/Redis.ts"
import type { Detail } from "./Digest.ts"
import { askEveryMs, LiveFeed } from "./LiveFeed.ts"
import * as LiveScripts from "./LiveScripts.ts"
import type { Topic } from "./Topics.ts"

export interface Change {
  readonly kind: string
  readonly detail: Detail
}

/** How far a source was read, and what has changed since. */
export interface Step {
  readonly progress: string
  readonly changes: ReadonlyArray<Change>
}

export interface Source<E, R> {
  readonly topic: Topic
  /** Processes with the same name see the same, so that one of them is enough. */
  readonly name: string
  /** The milliseconds between two looks. */
  readonly every: number
  /** Without `progress`, it begins with what is there now, which is no change. */
  readonly advance: (progress: string | undefined) => Effect.Effect<Step, E, R>
}

/**
 * Watches something that several processes can see, while somebody follows the topic. The process with the lease tells
 * the changes. The next one continues from its progress.
 */
export const watch = <E, R>({
  advance,
  every,
  name,
  topic
}: Source<E, R>): Effect.Effect<void, never, Redis | Scope.Scope | R> =>
  Effect.gen(function* () {
    const redis = yield* Redis
    const feed = (yield* LiveFeed)[topic]
    const logFailure = yield* LogThrottle.makePerMinute
    const owner = randomUUID()
    const lease = redis.key(`{live}:${topic}:lease:${name}`)
    const progressKey = redis.key(`{live}:${topic}:progress:${name}`)
    let progress: string | undefined

    const turn = Effect.gen(function* () {
      const held = yield* redis.run(LiveScripts.hold, [lease, progressKey], [owner, leaseMs, progressMs])
      if (held._tag === "Elsewhere") return
      if (held._tag === "Begun") progress = held.progress
      const step = yield* advance(progress)
      for (const { detail, kind } of step.changes) feed.add(kind, () => detail)
      if (step.progress === progress) return
      progress = step.progress
      yield* redis.command("SET", progressKey, step.progress, "PX", progressMs)
    }).pipe(
      Effect.catchCause((cause) =>
        logFailure((suppressed) =>
          Effect.logWarning(`Changes of the live topic ${topic} cannot be read${suppressed}`, cause)
        )
      )
    )
    yield* Effect.suspend(() =>
      feed.isFollowed ? Effect.andThen(turn, Effect.sleep(every)) : Effect.sleep(askEveryMs)
    ).pipe(Effect.forever, Effect.forkScoped)
  })

/** Another process takes over after this time. */
const leaseMs = 5_000

/** The progress outlives the lease, so that the next process continues from there. */
const progressMs = 3 * leaseMs

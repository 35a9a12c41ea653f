import { Clock, Context, Effect, Layer } from "effect"
import * as LogThrottle from "../services/LogThrottle.ts"
import { Redis } from "../services/Redis.ts"
import * as Digest from "./Digest.ts"
import { DigestBuffer } from "./DigestBuffer.ts"
import * as LiveScripts from "./LiveScripts.ts"
import { batchesKey, numberKey, type Topic, topics } from "./Topics.ts"

/** A topic as those see it who have something to tell. */
export interface LiveTopic {
  /** True while somebody follows the topic. Nobody pays for more than this check otherwise. */
  readonly isFollowed: boolean
  /** Call it only if `isFollowed`. `describe` is called within a quarter of a second, for the latest occurrences. */
  readonly add: (kind: string, describe: () => Digest.Detail) => void
}

export type LiveTopics = Readonly<Record<Topic, LiveTopic>>

const unfollowed: LiveTopic = { isFollowed: false, add: () => {} }

/** Tells the listeners of all control processes what happens in this one. Without the layer, nobody listens. */
export const LiveFeed = Context.Reference<LiveTopics>("svc/live/LiveFeed", {
  defaultValue: () => byTopic(() => unfollowed)
})

class FeedTopic implements LiveTopic {
  isFollowed = false
  readonly #buffer = new DigestBuffer(detailsPerBatch)

  readonly add = (kind: string, describe: () => Digest.Detail): void => this.#buffer.add(kind, describe)

  setFollowed(isFollowed: boolean): void {
    this.isFollowed = isFollowed
    if (!isFollowed) this.#buffer.clear()
  }

  take(): Digest.Digest | undefined {
    return this.#buffer.take()
  }

  putBack(digest: Digest.Digest): void {
    this.#buffer.putBack(digest)
  }
}

const make = Effect.gen(function* () {
  const redis = yield* Redis
  const logFailure = yield* LogThrottle.makePerMinute
  const feeds = byTopic(() => new FeedTopic())
  const numberKeys = topics.map((topic) => numberKey(redis.key, topic))

  const findFollowed = Effect.map(redis.command("MGET", ...numberKeys), (reply) => {
    const numbers = Array.isArray(reply) ? reply : []
    for (const [at, topic] of topics.entries()) feeds[topic].setFollowed((numbers[at] ?? null) !== null)
  })

  const send = Effect.suspend(() => {
    const batches = topics.flatMap((topic) => {
      const digest = feeds[topic].take()
      return digest === undefined ? [] : [{ topic, digest }]
    })
    if (batches.length === 0) return Effect.void
    const keys = batches.flatMap(({ topic }) => [numberKey(redis.key, topic), batchesKey(redis.key, topic)])
    const texts = batches.map(({ digest }) => Digest.encode(digest))
    return redis.run(LiveScripts.publish, keys, [keptBatches, batchTtlMs, ...texts]).pipe(
      Effect.flatMap((followed) =>
        Effect.sync(() => {
          for (const [at, { topic }] of batches.entries()) feeds[topic].setFollowed(followed[at] === true)
        })
      ),
      Effect.tapError(() =>
        Effect.sync(() => {
          for (const { digest, topic } of batches) feeds[topic].putBack(digest)
        })
      )
    )
  })

  const isAnyFollowed = () => topics.some((topic) => feeds[topic].isFollowed)
  const attempt = <E extends { readonly message: string }>(work: Effect.Effect<void, E>) =>
    Effect.catch(work, (error) =>
      isAnyFollowed()
        ? logFailure((suppressed) =>
            Effect.logWarning(`What happens here cannot be shown live, because Redis failed${suppressed}`, error)
          )
        : Effect.void
    )
  let askedAt = Number.NEGATIVE_INFINITY
  const turn = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const isDue = now - askedAt >= askEveryMs
    if (isDue) askedAt = now
    return Effect.andThen(isDue ? attempt(findFollowed) : Effect.void, attempt(send))
  })
  yield* turn.pipe(
    Effect.andThen(Effect.suspend(() => Effect.sleep(isAnyFollowed() ? sendEveryMs : askEveryMs))),
    Effect.forever,
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(send, "1 second")))
  return feeds
})

export const layer: Layer.Layer<never, never, Redis> = Layer.effect(LiveFeed, make)

function byTopic<A>(makeOne: (topic: Topic) => A): Record<Topic, A> {
  return {
    requests: makeOne("requests"),
    limits: makeOne("limits"),
    configuration: makeOne("configuration"),
    tasks: makeOne("tasks"),
    dead_letters: makeOne("dead_letters"),
    queues: makeOne("queues"),
    workers: makeOne("workers")
  }
}

/** At most four writes a second, whatever happens here. */
const sendEveryMs = 250

/** A process notices within this time that somebody follows a topic. */
export const askEveryMs = 500

/** The occurrences of one kind that a batch describes. A batch is at most a few kilobytes. */
const detailsPerBatch = 5

/** Redis keeps about this many batches of a topic, and none for longer than the time to live. */
export const keptBatches = 3_000
const batchTtlMs = 300_000

import { Clock, Effect, Option } from "effect"
import * as Digest from "../../live/Digest.ts"
import { askEveryMs, keptBatches } from "../../live/LiveFeed.ts"
import * as LiveScripts from "../../live/LiveScripts.ts"
import { batchesKey, numberKey, type Topic } from "../../live/Topics.ts"
import { Redis, type RedisError, type Reply } from "../../services/Redis.ts"
import { Delivery, detailsPerFrame, type LiveListener } from "./LiveListener.ts"

interface Batch {
  readonly number: number
  readonly digest: Digest.Digest
}

/** The batches of a topic that one turn has read. */
interface News {
  readonly topic: Topic
  number: number
  digest: Digest.Digest | undefined
  hasGap: boolean
}

/** A topic that this process follows. */
interface Followed {
  /** The number of the latest batch that was read. */
  number: number
  /** When all processes tell what happens, at the latest. */
  readonly readyAt: number
}

/**
 * Reads the topics for all listeners of this process. Batches are numbered without a gap: a listener gets each once and
 * in order, and learns if some are missing.
 */
export const make = Effect.map(Redis, (redis) => {
  const followed = new Map<Topic, Followed>()
  let renewedAt = Number.NEGATIVE_INFINITY

  const currentPosition = () => new Map([...followed].map(([topic, { number }]) => [topic, number] as const))

  const readAfter = (topic: Topic, number: number) =>
    Effect.map(
      redis.command("XRANGE", batchesKey(redis.key, topic), `${number + 1}-0`, "+", "COUNT", pageSize),
      batchesOf
    )

  const resetAll = (listeners: Iterable<LiveListener>, topic: Topic) => {
    for (const listener of listeners) {
      if (listener.hasJoined && listener.topics.includes(topic)) listener.reset(topic, "gone")
    }
  }

  /** Says that somebody follows the topics, and finds where new ones stand. */
  const renew = Effect.fnUntraced(function* (listeners: Iterable<LiveListener>, wanted: ReadonlySet<Topic>) {
    const now = yield* Clock.currentTimeMillis
    for (const topic of followed.keys()) if (!wanted.has(topic)) followed.delete(topic)
    const isNew = [...wanted].some((topic) => !followed.has(topic))
    if (wanted.size === 0 || (!isNew && now - renewedAt < renewEveryMs)) return
    const topics = [...wanted]
    const keys = topics.flatMap((topic) => [numberKey(redis.key, topic), batchesKey(redis.key, topic)])
    const found = yield* redis.run(LiveScripts.renew, keys, [now * numbersPerMs, interestMs])
    renewedAt = now
    for (const [at, topic] of topics.entries()) {
      const known = followed.get(topic)
      const { began = false, number = 0 } = found[at] ?? {}
      if (known === undefined) followed.set(topic, { number, readyAt: now + noticedWithinMs })
      else if (began || number < known.number) {
        // Redis has lost its data, or did not respond for so long that nobody seemed to follow the topic.
        followed.set(topic, { number, readyAt: now + noticedWithinMs })
        resetAll(listeners, topic)
      }
    }
  })

  /** Reads all new batches of a topic. */
  const readNew = Effect.fnUntraced(function* (topic: Topic, from: number) {
    const news: News = { topic, number: from, digest: undefined, hasGap: false }
    for (let page = 0; page < pagesPerTurn; page++) {
      const batches = yield* readAfter(topic, news.number)
      for (const { digest, number } of batches) {
        if (number !== news.number + 1) news.hasGap = true
        news.number = number
        news.digest = Digest.merge(news.digest ?? Digest.empty, digest, detailsPerFrame)
      }
      if (batches.length < pageSize) break
    }
    return news
  })

  const deliver = (listeners: ReadonlyArray<LiveListener>, all: ReadonlyArray<News>) => {
    const digests = new Map<Topic, Digest.Digest>()
    for (const { digest, hasGap, number, topic } of all) {
      const state = followed.get(topic)
      if (state !== undefined) state.number = number
      if (hasGap) resetAll(listeners, topic)
      if (digest !== undefined) digests.set(topic, digest)
    }
    const delivery = new Delivery(digests)
    const position = currentPosition()
    for (const listener of listeners) if (listener.hasJoined) listener.offer(delivery, position)
  }

  /**
   * Reads what the listeners have missed, up to the position of this process. One walk over the batches serves all of
   * them. Returns what each has missed; a listener of whom a batch is gone is reset.
   */
  const catchUp = Effect.fnUntraced(function* (topic: Topic, listeners: ReadonlyArray<LiveListener>, until: number) {
    const next = new Map(listeners.map((listener) => [listener, (listener.resume.get(topic) ?? until) + 1]))
    const missed = new Map<LiveListener, Digest.Digest>()
    const lose = (listener: LiveListener) => {
      next.delete(listener)
      missed.delete(listener)
      listener.reset(topic, "gone")
    }
    for (const [listener, number] of next) {
      if (number === until + 1) next.delete(listener)
      else if (number > until || number < until - keptBatches * 2) lose(listener)
    }
    let from = Math.min(...next.values()) - 1
    while (next.size > 0 && from < until) {
      const batches = (yield* readAfter(topic, from)).filter(({ number }) => number <= until)
      for (const { digest, number } of batches) {
        for (const [listener, expected] of next) {
          if (number < expected) continue
          if (number > expected) lose(listener)
          else {
            missed.set(listener, Digest.merge(missed.get(listener) ?? Digest.empty, digest, detailsPerFrame))
            next.set(listener, number + 1)
          }
        }
      }
      const last = batches.at(-1)
      if (last === undefined) break
      from = last.number
    }
    for (const [listener, expected] of next) if (expected !== until + 1) lose(listener)
    return missed
  })

  const join = Effect.fnUntraced(function* (joining: ReadonlyArray<LiveListener>) {
    const missed = new Map<LiveListener, Map<Topic, Digest.Digest>>()
    for (const [topic, { number }] of followed) {
      const resuming = joining.filter(({ resume, topics }) => topics.includes(topic) && resume.has(topic))
      if (resuming.length === 0) continue
      for (const [listener, digest] of yield* catchUp(topic, resuming, number)) {
        missed.set(listener, (missed.get(listener) ?? new Map<Topic, Digest.Digest>()).set(topic, digest))
      }
    }
    const position = currentPosition()
    for (const listener of joining) listener.join(new Delivery(missed.get(listener) ?? new Map()), position)
  })

  /** Reads once, and hands everything over. If it fails, the next turn reads the same again. */
  return Effect.fnUntraced(function* (open: Iterable<LiveListener>): Effect.fn.Return<void, RedisError> {
    const listeners = [...open]
    yield* renew(listeners, new Set(listeners.flatMap(({ topics }) => topics)))
    if (listeners.length === 0) return
    const news = yield* Effect.forEach(followed, ([topic, { number }]) => readNew(topic, number), {
      concurrency: "unbounded"
    })
    deliver(listeners, news)
    yield* join(listeners.filter(({ hasJoined }) => !hasJoined))
    const now = yield* Clock.currentTimeMillis
    for (const listener of listeners) {
      if (!listener.isReady && listener.topics.every((topic) => now >= (followed.get(topic)?.readyAt ?? now))) {
        listener.ready()
      }
    }
  })
})

const batchesOf = (reply: Reply): ReadonlyArray<Batch> => items(reply).flatMap(batchOf)

const batchOf = (entry: Reply): ReadonlyArray<Batch> => {
  const [id, fields] = items(entry)
  const number = Number.parseInt(String(id), 10)
  return Number.isSafeInteger(number)
    ? [{ number, digest: Option.getOrElse(Digest.decode(items(fields)[1]), () => Digest.empty) }]
    : []
}

const items = (reply: Reply | undefined): ReadonlyArray<Reply> => (Array.isArray(reply) ? reply : [])

/** A new numbering begins at a number that is higher than all of the last one. */
const numbersPerMs = 1_000

/** Processes go on telling for this time after the last listener has gone, so that a client can reconnect. */
const interestMs = 30_000
const renewEveryMs = 5_000

/** All processes have noticed after this time that somebody follows a topic, and so have the sources that they watch. */
const noticedWithinMs = 3 * askEveryMs

const pageSize = 200
const pagesPerTurn = 25

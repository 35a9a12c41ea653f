import { Cause, Effect, Queue, type Scope, Stream } from "effect"

/** How many messages a follower may be behind before it is told, by a failure, that it lost some. */
const capacity = 4_096

/** What one follower has yet to read. Bounded: who falls too far behind fails instead of growing. */
export interface SubscriberQueue<E> {
  readonly messages: Stream.Stream<string, E>
  readonly deliver: (message: string) => void
  readonly fail: (error: E) => void
}

export const make = <E>(lagging: () => E): Effect.Effect<SubscriberQueue<E>, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(Queue.dropping<string, E>(capacity), (queue) => Queue.shutdown(queue)),
    (queue): SubscriberQueue<E> => ({
      messages: Stream.fromQueue(queue),
      deliver: (message) => {
        if (!Queue.offerUnsafe(queue, message)) Queue.failCauseUnsafe(queue, Cause.fail(lagging()))
      },
      fail: (error) => {
        Queue.failCauseUnsafe(queue, Cause.fail(error))
      }
    })
  )

/** The followers of named channels within this process. */
export interface Fanout<E> {
  readonly subscribe: (channel: string) => Effect.Effect<SubscriberQueue<E>, never, Scope.Scope>
  /** Answers how many followers it reached. */
  readonly publish: (channel: string, message: string) => number
  readonly subscriberCount: (channel: string) => number
  readonly fail: (error: E) => void
}

export const fanout = <E>(lagging: () => E): Fanout<E> => {
  const channels = new Map<string, Set<SubscriberQueue<E>>>()

  const join = (channel: string, inbox: SubscriberQueue<E>) => {
    const inboxes = channels.get(channel)
    if (inboxes === undefined) channels.set(channel, new Set([inbox]))
    else inboxes.add(inbox)
  }

  const leave = (channel: string, inbox: SubscriberQueue<E>) => {
    const inboxes = channels.get(channel)
    if (inboxes?.delete(inbox) && inboxes.size === 0) channels.delete(channel)
  }

  return {
    subscribe: (channel) =>
      Effect.tap(make(lagging), (inbox) =>
        Effect.acquireRelease(
          Effect.sync(() => join(channel, inbox)),
          () => Effect.sync(() => leave(channel, inbox))
        )
      ),
    publish: (channel, message) => {
      const inboxes = channels.get(channel)
      if (inboxes === undefined) return 0
      for (const inbox of inboxes) inbox.deliver(message)
      return inboxes.size
    },
    subscriberCount: (channel) => channels.get(channel)?.size ?? 0,
    fail: (error) => {
      for (const inboxes of channels.values()) {
        for (const inbox of inboxes) inbox.fail(error)
      }
    }
  }
}

import { Cause, Effect, Queue, type Scope, Stream } from "effect"

/** A subscriber with this many unread messages loses its subscription. */
const capacity = 4_096

/** The unread messages of one subscriber. The subscription fails when a message does not fit into the queue. */
export interface SubscriberQueue<E> {
  readonly messages: Stream.Stream<string, E>
  readonly deliver: (message: string) => void
  readonly fail: (error: E) => void
}

export const make = <E>(makeLagError: () => E): Effect.Effect<SubscriberQueue<E>, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(Queue.dropping<string, E>(capacity), (queue) => Queue.shutdown(queue)),
    (queue): SubscriberQueue<E> => ({
      messages: Stream.fromQueue(queue),
      deliver: (message) => {
        if (!Queue.offerUnsafe(queue, message)) Queue.failCauseUnsafe(queue, Cause.fail(makeLagError()))
      },
      fail: (error) => {
        Queue.failCauseUnsafe(queue, Cause.fail(error))
      }
    })
  )

/** The subscribers of named channels within this process. */
export interface Fanout<E> {
  readonly subscribe: (channel: string) => Effect.Effect<SubscriberQueue<E>, never, Scope.Scope>
  /** Returns the number of subscribers that received the message. */
  readonly publish: (channel: string, message: string) => number
  readonly subscriberCount: (channel: string) => number
  readonly fail: (error: E) => void
}

export const fanout = <E>(makeLagError: () => E): Fanout<E> => {
  const channels = new Map<string, Set<SubscriberQueue<E>>>()

  const add = (channel: string, queue: SubscriberQueue<E>) => {
    const queues = channels.get(channel)
    if (queues === undefined) channels.set(channel, new Set([queue]))
    else queues.add(queue)
  }

  const remove = (channel: string, queue: SubscriberQueue<E>) => {
    const queues = channels.get(channel)
    if (queues?.delete(queue) && queues.size === 0) channels.delete(channel)
  }

  return {
    subscribe: (channel) =>
      Effect.tap(make(makeLagError), (queue) =>
        Effect.acquireRelease(
          Effect.sync(() => add(channel, queue)),
          () => Effect.sync(() => remove(channel, queue))
        )
      ),
    publish: (channel, message) => {
      const queues = channels.get(channel)
      if (queues === undefined) return 0
      for (const queue of queues) queue.deliver(message)
      return queues.size
    },
    subscriberCount: (channel) => channels.get(channel)?.size ?? 0,
    fail: (error) => {
      for (const queues of channels.values()) {
        for (const queue of queues) queue.fail(error)
      }
    }
  }
}

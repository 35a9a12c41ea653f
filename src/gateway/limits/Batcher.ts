import { Effect, Exit } from "effect"

/** Runs callbacks at the end of an event loop tick. The Redis driver can then send several batches in one write. */
type TickScheduler = (flush: () => void) => void

export const perTick = (): TickScheduler => {
  let flushes: Array<() => void> = []
  return (flush) => {
    flushes.push(flush)
    if (flushes.length > 1) return
    setImmediate(() => {
      const all = flushes
      flushes = []
      for (const flush of all) flush()
    })
  }
}

/**
 * Passes all items of one event loop tick to one `call`, which returns one result per item in the same order. With 64
 * connections, a tick has about 30 items. One call for 30 items takes a tenth of the time of 30 calls.
 */
export const makeBatcher = <Item, A, E>(
  schedule: TickScheduler,
  maxSize: number,
  call: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<A>, E>
): Effect.Effect<(item: Item, done: (exit: Exit.Exit<A, E>) => void) => void> =>
  Effect.map(Effect.context<never>(), (context) => {
    interface PendingItem {
      readonly item: Item
      readonly done: (exit: Exit.Exit<A, E>) => void
    }
    let pending: Array<PendingItem> = []

    const run = (waiting: ReadonlyArray<PendingItem>) =>
      Effect.runForkWith(context)(
        Effect.matchCause(call(waiting.map(({ item }) => item)), {
          onSuccess: (results) => {
            for (const [index, { done }] of waiting.entries()) done(Exit.succeed(results[index]!))
          },
          onFailure: (cause) => {
            for (const { done } of waiting) done(Exit.failCause(cause))
          }
        })
      )

    return (item, done) => {
      pending.push({ item, done })
      if (pending.length > 1) return
      schedule(() => {
        const all = pending
        pending = []
        for (let from = 0; from < all.length; from += maxSize) run(all.slice(from, from + maxSize))
      })
    }
  })

import { Clock, Effect, type Scope } from "effect"
import type { SseClient } from "./SseClient.ts"

/** Somebody who may have a limited number of streams, such as an address. */
export interface Holder {
  readonly id: string
  readonly most: number
}

/**
 * Why no further stream can be opened: the server shuts down, the process has its maximum of streams, or a holder has.
 */
export type NoStream = { readonly reason: "draining" | "limit" } | { readonly reason: "share"; readonly holder: Holder }

/** The open event streams of a process: their number is limited, also for each holder. */
export class OpenStreams<Client extends SseClient> implements Iterable<Client> {
  readonly #most: number
  readonly #clients = new Set<Client>()
  readonly #countOf = new Map<string, number>()
  #draining = false

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#clients.size
  }

  [Symbol.iterator](): Iterator<Client> {
    return this.#clients[Symbol.iterator]()
  }

  refusal(holders: ReadonlyArray<Holder>): NoStream | undefined {
    if (this.#draining) return { reason: "draining" }
    if (this.#clients.size >= this.#most) return { reason: "limit" }
    const full = holders.find(({ id, most }) => (this.#countOf.get(id) ?? 0) >= most)
    return full && { reason: "share", holder: full }
  }

  add(client: Client, holders: ReadonlyArray<Holder>): void {
    this.#clients.add(client)
    for (const { id } of holders) this.#countOf.set(id, (this.#countOf.get(id) ?? 0) + 1)
  }

  delete(client: Client, holders: ReadonlyArray<Holder>): void {
    this.#clients.delete(client)
    for (const { id } of holders) {
      const left = (this.#countOf.get(id) ?? 0) - 1
      if (left > 0) this.#countOf.set(id, left)
      else this.#countOf.delete(id)
    }
  }

  /** Ends every stream with a notice, and refuses new ones. */
  drain(): void {
    this.#draining = true
    for (const client of this.#clients) client.beginShutdown()
  }

  /** Looks after silent and stalled clients, as long as the scope is open. */
  sweepEvery(ms: number): Effect.Effect<void, never, Scope.Scope> {
    return Effect.sleep(ms).pipe(
      Effect.andThen(Clock.currentTimeMillis),
      Effect.tap((now) =>
        Effect.sync(() => {
          for (const client of this.#clients) client.sweep(now)
        })
      ),
      Effect.forever,
      Effect.forkScoped,
      Effect.asVoid
    )
  }
}

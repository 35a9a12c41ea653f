interface Event {
  readonly connection: ClientConnection
  readonly run: () => void
}

/**
 * Delivers all events of the broker to its clients, in one order. As with a socket, an event arrives in a later tick of
 * the event loop, never during the call that caused it.
 */
export class EventQueue {
  readonly #defer: (task: () => void) => void
  readonly #commit: (retry: () => void) => boolean
  #events: Array<Event> = []
  #scheduled = false
  #frozen = false

  /**
   * `commit` stores all changes before clients hear of them. If it returns false, the events wait, and it calls `retry`
   * later.
   */
  constructor(defer: (task: () => void) => void, commit: (retry: () => void) => boolean) {
    this.#defer = defer
    this.#commit = commit
  }

  set frozen(frozen: boolean) {
    this.#frozen = frozen
    this.#schedule()
  }

  send(connection: ClientConnection, run: () => void): void {
    this.#events.push({ connection, run })
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#frozen || this.#events.length === 0) return
    this.#scheduled = true
    this.#defer(() => this.#deliver())
  }

  /** New events wait for the next tick. Otherwise two clients that react to each other would block the event loop. */
  #deliver(): void {
    this.#scheduled = false
    if (this.#frozen) return
    if (!this.#commit(() => this.#deliver())) {
      this.#scheduled = true
      return
    }
    const events = this.#events
    this.#events = []
    for (const { run, connection } of events) if (connection.isOpen) run()
    this.#schedule()
  }
}

export class ClientConnection {
  isOpen = true
  readonly name: string
  readonly #eventQueue: EventQueue
  #alarm: string | undefined
  #heldPublishes: Array<() => void> = []
  #onBlocked: (reason: string | undefined) => void = () => {}
  readonly #onEnd = new Set<(reason: string) => void>()

  constructor(eventQueue: EventQueue, name: string) {
    this.#eventQueue = eventQueue
    this.name = name
  }

  send(run: () => void): void {
    this.#eventQueue.send(this, run)
  }

  /** During a memory alarm, publishes wait. The first waiting publish makes the broker report the alarm. */
  publish(work: () => void): void {
    if (this.#alarm === undefined) {
      work()
      return
    }
    this.#heldPublishes.push(work)
    if (this.#heldPublishes.length === 1) this.#sendBlocked(this.#alarm)
  }

  set alarm(reason: string | undefined) {
    this.#alarm = reason
    if (reason !== undefined || this.#heldPublishes.length === 0) return
    const publishes = this.#heldPublishes
    this.#heldPublishes = []
    for (const work of publishes) work()
    this.#sendBlocked(undefined)
  }

  onBlocked(listener: (reason: string | undefined) => void): void {
    this.#onBlocked = listener
  }

  #sendBlocked(reason: string | undefined): void {
    this.send(() => this.#onBlocked(reason))
  }

  /** Returns a function that removes the listener. */
  onEnd(listener: (reason: string) => void): () => void {
    this.#onEnd.add(listener)
    return () => this.#onEnd.delete(listener)
  }

  end(reason: string): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#heldPublishes = []
    for (const listener of this.#onEnd) listener(reason)
  }
}

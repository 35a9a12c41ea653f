interface Event {
  readonly line: Line
  readonly happen: () => void
}

/**
 * What is on its way from the broker to its clients, in one order for all of them. It arrives in a turn of its own, as
 * from a socket: never while the client is still in the call that caused it.
 */
export class Wire {
  readonly #later: (task: () => void) => void
  #events: Array<Event> = []
  #scheduled = false
  #frozen = false

  constructor(later: (task: () => void) => void) {
    this.#later = later
  }

  set frozen(frozen: boolean) {
    this.#frozen = frozen
    this.#schedule()
  }

  send(line: Line, happen: () => void): void {
    this.#events.push({ line, happen })
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#frozen || this.#events.length === 0) return
    this.#scheduled = true
    this.#later(() => this.#arrive())
  }

  /** What comes up meanwhile has to wait for the next turn: otherwise two who answer each other would never let go. */
  #arrive(): void {
    this.#scheduled = false
    if (this.#frozen) return
    const events = this.#events
    this.#events = []
    for (const { happen, line } of events) if (line.isOpen) happen()
    this.#schedule()
  }
}

/** One connection, from its opening to its end. */
export class Line {
  isOpen = true
  readonly name: string
  readonly #wire: Wire
  #alarm: string | undefined
  #held: Array<() => void> = []
  #onBlocked: (reason: string | undefined) => void = () => {}
  readonly #onEnd = new Set<(reason: string) => void>()

  constructor(wire: Wire, name: string) {
    this.#wire = wire
    this.name = name
  }

  send(happen: () => void): void {
    this.#wire.send(this, happen)
  }

  /** Publishes while the broker has an alarm stay in the socket; the first of them makes the broker say so. */
  publish(work: () => void): void {
    if (this.#alarm === undefined) {
      work()
      return
    }
    this.#held.push(work)
    if (this.#held.length === 1) this.#say(this.#alarm)
  }

  set alarm(reason: string | undefined) {
    this.#alarm = reason
    if (reason !== undefined || this.#held.length === 0) return
    const held = this.#held
    this.#held = []
    for (const work of held) work()
    this.#say(undefined)
  }

  onBlocked(listener: (reason: string | undefined) => void): void {
    this.#onBlocked = listener
  }

  #say(reason: string | undefined): void {
    this.send(() => this.#onBlocked(reason))
  }

  /** Called when it ends; gives back how to stop listening. */
  onEnd(listener: (reason: string) => void): () => void {
    this.#onEnd.add(listener)
    return () => this.#onEnd.delete(listener)
  }

  end(reason: string): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#held = []
    for (const listener of this.#onEnd) listener(reason)
  }
}

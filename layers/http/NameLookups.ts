import { ADDRCONFIG, type LookupAddress, lookup } from "node:dns"

type Found = ReadonlyArray<LookupAddress>
export type Told = (error: NodeJS.ErrnoException | null, found: Found) => void
export type Resolve = (host: string, told: Told) => void

/**
 * The system's resolver: it reads `/etc/hosts`, search domains and whatever else the host is set up for, which a DNS
 * client of our own would not. It knows no time to live.
 */
export const system: Resolve = (host, told) => lookup(host, { all: true, hints: ADDRCONFIG }, told)

/** An answer is used for so long without asking again. */
const freshMs = 10_000
/** An old answer stands in for so long where the name server does not answer, or says to try again. */
const staleMs = 600_000
/** When an old answer is used rather than waiting longer. */
const patienceMs = 500
const failedMs = 1_000
/** A name server that took so long to fail is asked more rarely. */
const slowMs = 1_000
const slowlyFailedMs = 5_000
const remembered = 1_000
const mostPending = 1_000

/**
 * The system's resolver blocks one of libuv's four threads for as long as a name server is silent (20 seconds and
 * more), and the process needs those threads for other work too. So look-ups have three of them at most: any name that
 * was answered before may take one; names that never were may take two; those that failed slowly may take one.
 */
const places = { answered: 3, unanswered: 2, slow: 1 } as const

interface Flight {
  readonly host: string
  readonly waiting: Set<Told>
  readonly answeredBefore: boolean
  readonly slow: boolean
  startedAt: number | undefined
  patience: NodeJS.Timeout | undefined
  /** It takes so long that an old answer stands in. */
  late: boolean
}

/**
 * Addresses of hosts, with one look-up of a host at a time, whoever asks, and short memories of answers and failures. A
 * host whose name server hangs delays only the hosts that were never reached before.
 */
export class NameLookups {
  readonly #resolve: Resolve
  readonly #now: () => number
  /** `until`: when to ask again. */
  readonly #answers = new Map<string, { readonly found: Found; readonly at: number; readonly until: number }>()
  readonly #failures = new Map<
    string,
    { readonly error: NodeJS.ErrnoException; readonly until: number; readonly slow: boolean }
  >()
  readonly #flights = new Map<string, Flight>()

  constructor(resolve: Resolve = system, now: () => number = () => performance.now()) {
    this.#resolve = resolve
    this.#now = now
  }

  /** Tells the addresses of `host` once, unless the function that is returned was called before: nobody waits then. */
  ask(host: string, told: Told): () => void {
    const now = this.#now()
    const answer = this.#answers.get(host)
    const known = this.#flights.get(host)
    if (answer !== undefined && (now < answer.until || known?.late === true)) {
      return soon(() => told(null, answer.found))
    }
    const failure = this.#failures.get(host)
    if (failure !== undefined && now < failure.until) return soon(() => told(failure.error, []))
    const flight = known ?? this.#take(host)
    if (flight === undefined) return soon(() => told(tooMany(host), []))
    flight.waiting.add(told)
    if (known === undefined) this.#startAll()
    return () => {
      flight.waiting.delete(told)
      if (flight.waiting.size > 0 || flight.startedAt !== undefined) return
      clearTimeout(flight.patience)
      if (this.#flights.get(host) === flight) this.#flights.delete(host)
    }
  }

  #take(host: string): Flight | undefined {
    if (this.#flights.size >= mostPending) return undefined
    const old = this.#usable(host)
    const flight: Flight = {
      host,
      waiting: new Set(),
      answeredBefore: old !== undefined,
      slow: this.#failures.get(host)?.slow === true,
      startedAt: undefined,
      patience: undefined,
      late: false
    }
    if (old !== undefined) {
      flight.patience = setTimeout(() => {
        flight.late = true
        this.#tell(flight, null, old.found)
      }, patienceMs).unref()
    }
    this.#flights.set(host, flight)
    return flight
  }

  /** An old answer that may still stand in. */
  #usable(host: string) {
    const answer = this.#answers.get(host)
    return answer !== undefined && this.#now() - answer.at < staleMs ? answer : undefined
  }

  /** Starts what there is a place for, in the order of asking. */
  #startAll(): void {
    const running = { answered: 0, unanswered: 0, slow: 0 }
    for (const { answeredBefore, slow, startedAt } of this.#flights.values()) {
      if (startedAt === undefined) continue
      running.answered += 1
      if (!answeredBefore) running.unanswered += 1
      if (!answeredBefore && slow) running.slow += 1
    }
    for (const flight of this.#flights.values()) {
      if (running.answered >= places.answered) return
      if (flight.startedAt !== undefined) continue
      if (!flight.answeredBefore) {
        if (running.unanswered >= places.unanswered) continue
        if (flight.slow && running.slow >= places.slow) continue
        running.unanswered += 1
        if (flight.slow) running.slow += 1
      }
      running.answered += 1
      const startedAt = this.#now()
      flight.startedAt = startedAt
      this.#resolve(flight.host, (error, found) => this.#end(flight, startedAt, error, found))
    }
  }

  #end(flight: Flight, startedAt: number, error: NodeJS.ErrnoException | null, found: Found): void {
    const { host } = flight
    clearTimeout(flight.patience)
    this.#flights.delete(host)
    const now = this.#now()
    if (error === null) {
      this.#failures.delete(host)
      remember(this.#answers, host, { found, at: now, until: now + freshMs })
      this.#tell(flight, null, found)
    } else {
      const slow = now - startedAt >= slowMs
      const until = now + (slow ? slowlyFailedMs : failedMs)
      const old = error.code === "EAI_AGAIN" ? this.#usable(host) : undefined
      if (old === undefined) {
        remember(this.#failures, host, { error, until, slow })
        this.#tell(flight, error, [])
      } else {
        this.#answers.set(host, { ...old, until })
        this.#tell(flight, null, old.found)
      }
    }
    this.#startAll()
  }

  #tell(flight: Flight, error: NodeJS.ErrnoException | null, found: Found): void {
    const waiting = [...flight.waiting]
    flight.waiting.clear()
    for (const told of waiting) told(error, found)
  }
}

const remember = <A>(map: Map<string, A>, host: string, value: A): void => {
  map.delete(host)
  map.set(host, value)
  const oldest = map.keys().next().value
  if (map.size > remembered && oldest !== undefined) map.delete(oldest)
}

/** Never before the asker goes on, as with a look-up. */
const soon = (tell: () => void): (() => void) => {
  const waiting = setImmediate(tell)
  return () => clearImmediate(waiting)
}

const tooMany = (host: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${host} cannot be looked up: ${mostPending} other names wait for that`), {
    code: "EAI_AGAIN"
  })

/** One for the process, because its threads are. */
export const names = new NameLookups()

import { ADDRCONFIG, type LookupAddress, lookup } from "node:dns"

type ResolvedAddresses = ReadonlyArray<LookupAddress>
export type LookupCallback = (error: NodeJS.ErrnoException | null, found: ResolvedAddresses) => void
export type Resolve = (host: string, callback: LookupCallback) => void

/**
 * Uses the resolver of the operating system, because it reads `/etc/hosts` and knows search domains. Its answers have
 * no TTL.
 */
const systemResolver: Resolve = (host, callback) => lookup(host, { all: true, hints: ADDRCONFIG }, callback)

/** For this time an answer is used without a new look-up. All times are in milliseconds. */
const freshMs = 10_000
/** Up to this age, an answer is used if the name server does not respond or asks for a retry. */
const staleMs = 600_000
/** If a look-up takes longer, callers get the old addresses, if there are any. */
const waitBeforeStaleMs = 500
const failedMs = 1_000
/** If a look-up takes this time to fail, the next one waits for `slowlyFailedMs` instead of `failedMs`. */
const slowMs = 1_000
const slowlyFailedMs = 5_000
const maxRemembered = 1_000
const maxPending = 1_000

/**
 * A look-up without a response blocks one of libuv's four threads for 20 seconds or more. Files and cryptography need
 * these threads, too. So look-ups use at most three threads. Names that never resolved use at most two, and names whose
 * last look-up failed slowly at most one.
 */
const maxRunning = { answered: 3, unanswered: 2, slow: 1 } as const

interface PendingLookup {
  readonly host: string
  readonly waiting: Set<LookupCallback>
  readonly answeredBefore: boolean
  readonly slow: boolean
  startedAt: number | undefined
  staleTimer: NodeJS.Timeout | undefined
  isLate: boolean
}

/**
 * Resolves host names. Look-ups of the same name are merged, and results are cached for 10 seconds. If the name server
 * does not respond, names that resolved before keep their old addresses for up to 10 minutes.
 */
export class NameLookups {
  readonly #resolve: Resolve
  readonly #now: () => number
  /** After the time `until`, a new look-up is needed. */
  readonly #answers = new Map<
    string,
    { readonly found: ResolvedAddresses; readonly at: number; readonly until: number }
  >()
  readonly #failures = new Map<
    string,
    { readonly error: NodeJS.ErrnoException; readonly until: number; readonly slow: boolean }
  >()
  readonly #pending = new Map<string, PendingLookup>()

  constructor(resolve: Resolve = systemResolver, now: () => number = () => performance.now()) {
    this.#resolve = resolve
    this.#now = now
  }

  lookUp(host: string, callback: LookupCallback): () => void {
    const now = this.#now()
    const answer = this.#answers.get(host)
    const pending = this.#pending.get(host)
    if (answer !== undefined && (now < answer.until || pending?.isLate === true)) {
      return callLater(() => callback(null, answer.found))
    }
    const failure = this.#failures.get(host)
    if (failure !== undefined && now < failure.until) return callLater(() => callback(failure.error, []))
    const pendingLookup = pending ?? this.#addPending(host)
    if (pendingLookup === undefined) return callLater(() => callback(tooManyLookups(host), []))
    pendingLookup.waiting.add(callback)
    if (pending === undefined) this.#startPending()
    return () => {
      pendingLookup.waiting.delete(callback)
      if (pendingLookup.waiting.size > 0 || pendingLookup.startedAt !== undefined) return
      clearTimeout(pendingLookup.staleTimer)
      if (this.#pending.get(host) === pendingLookup) this.#pending.delete(host)
    }
  }

  #addPending(host: string): PendingLookup | undefined {
    if (this.#pending.size >= maxPending) return undefined
    const old = this.#staleAnswer(host)
    const pendingLookup: PendingLookup = {
      host,
      waiting: new Set(),
      answeredBefore: old !== undefined,
      slow: this.#failures.get(host)?.slow === true,
      startedAt: undefined,
      staleTimer: undefined,
      isLate: false
    }
    if (old !== undefined) {
      pendingLookup.staleTimer = setTimeout(() => {
        pendingLookup.isLate = true
        this.#callBack(pendingLookup, null, old.found)
      }, waitBeforeStaleMs).unref()
    }
    this.#pending.set(host, pendingLookup)
    return pendingLookup
  }

  #staleAnswer(host: string) {
    const answer = this.#answers.get(host)
    return answer !== undefined && this.#now() - answer.at < staleMs ? answer : undefined
  }

  #startPending(): void {
    const running = { answered: 0, unanswered: 0, slow: 0 }
    for (const { answeredBefore, slow, startedAt } of this.#pending.values()) {
      if (startedAt === undefined) continue
      running.answered += 1
      if (!answeredBefore) running.unanswered += 1
      if (!answeredBefore && slow) running.slow += 1
    }
    for (const pendingLookup of this.#pending.values()) {
      if (running.answered >= maxRunning.answered) return
      if (pendingLookup.startedAt !== undefined) continue
      if (!pendingLookup.answeredBefore) {
        if (running.unanswered >= maxRunning.unanswered) continue
        if (pendingLookup.slow && running.slow >= maxRunning.slow) continue
        running.unanswered += 1
        if (pendingLookup.slow) running.slow += 1
      }
      running.answered += 1
      const startedAt = this.#now()
      pendingLookup.startedAt = startedAt
      this.#resolve(pendingLookup.host, (error, found) => this.#onResolved(pendingLookup, startedAt, error, found))
    }
  }

  #onResolved(
    pendingLookup: PendingLookup,
    startedAt: number,
    error: NodeJS.ErrnoException | null,
    found: ResolvedAddresses
  ): void {
    const { host } = pendingLookup
    clearTimeout(pendingLookup.staleTimer)
    this.#pending.delete(host)
    const now = this.#now()
    if (error === null) {
      this.#failures.delete(host)
      remember(this.#answers, host, { found, at: now, until: now + freshMs })
      this.#callBack(pendingLookup, null, found)
    } else {
      const slow = now - startedAt >= slowMs
      const until = now + (slow ? slowlyFailedMs : failedMs)
      const old = error.code === "EAI_AGAIN" ? this.#staleAnswer(host) : undefined
      if (old === undefined) {
        remember(this.#failures, host, { error, until, slow })
        this.#callBack(pendingLookup, error, [])
      } else {
        this.#answers.set(host, { ...old, until })
        this.#callBack(pendingLookup, null, old.found)
      }
    }
    this.#startPending()
  }

  #callBack(pendingLookup: PendingLookup, error: NodeJS.ErrnoException | null, found: ResolvedAddresses): void {
    const waiting = [...pendingLookup.waiting]
    pendingLookup.waiting.clear()
    for (const callback of waiting) callback(error, found)
  }
}

const remember = <A>(map: Map<string, A>, host: string, value: A): void => {
  map.delete(host)
  map.set(host, value)
  const oldest = map.keys().next().value
  if (map.size > maxRemembered && oldest !== undefined) map.delete(oldest)
}

/** Calls back asynchronously, so that cached answers behave like look-ups. */
const callLater = (tell: () => void): (() => void) => {
  const waiting = setImmediate(tell)
  return () => clearImmediate(waiting)
}

const tooManyLookups = (host: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${host} cannot be looked up: ${maxPending} other look-ups are pending`), {
    code: "EAI_AGAIN"
  })

/** One instance for the process, because libuv's threads are shared. */
export const processLookups = new NameLookups()

import * as FairShare from "./FairShare.ts"

/** The room that is full is that of the whole process, or that of the caller. */
export type LimitOwner = "process" | "caller"

/** Room for one body: grows with its bytes, given back once. */
export interface BodyLease {
  /** Returns `undefined` where there is room. */
  readonly grow: (bytes: number) => LimitOwner | undefined
  readonly release: () => void
}

/** Bodies, and the sum of their bytes. */
export interface BodyUsage {
  readonly requests: number
  readonly bytes: number
}

/** Counts the memory of all bodies, of which each caller may hold a share. Nothing queues. */
export class BodyLeases {
  readonly #most: BodyUsage
  readonly #all = { requests: 0, bytes: 0 }
  readonly #callers = new Map<string, { requests: number; bytes: number }>()

  constructor(most: BodyUsage) {
    this.#most = most
  }

  get usage(): BodyUsage {
    return this.#all
  }

  /** Room for a body of `caller`. */
  lease(caller: string): BodyLease {
    const [all, callers, most] = [this.#all, this.#callers, this.#most]
    let leasedBytes = 0
    /** The sum of all bodies of the caller, while this one is among them. */
    let callerUsage: { requests: number; bytes: number } | undefined
    return {
      grow: (more) => {
        const first = callerUsage === undefined ? 1 : 0
        const candidate = callerUsage ?? callers.get(caller) ?? { requests: 0, bytes: 0 }
        if (all.requests + first > most.requests || all.bytes + more > most.bytes) return "process"
        // the only body of a caller may be as large as its route allows
        const isOnlyBody = candidate.requests + first === 1
        const fits = (of: keyof BodyUsage, wanted: number) =>
          candidate[of] + wanted <= FairShare.allowance(most[of], all[of] - candidate[of])
        if (!isOnlyBody && !(fits("requests", first) && fits("bytes", more))) return "caller"
        if (callerUsage === undefined) callers.set(caller, candidate)
        callerUsage = candidate
        leasedBytes += more
        all.requests += first
        all.bytes += more
        candidate.requests += first
        candidate.bytes += more
        return undefined
      },
      release: () => {
        if (callerUsage === undefined) return
        all.requests--
        all.bytes -= leasedBytes
        callerUsage.requests--
        callerUsage.bytes -= leasedBytes
        if (callerUsage.requests === 0) callers.delete(caller)
        callerUsage = undefined
        leasedBytes = 0
      }
    }
  }
}

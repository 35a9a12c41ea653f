import * as FairShare from "./FairShare.ts"

/** The owner of the limit that is reached: the whole process or one caller. */
export type LimitOwner = "process" | "caller"

/** The memory reserved for one request body. `grow` reserves more, and `release` frees all of it. */
export interface BodyLease {
  /** Reserves `bytes` more bytes. Returns `undefined` on success, or the owner of the limit that is reached. */
  readonly grow: (bytes: number) => LimitOwner | undefined
  readonly release: () => void
}

export interface BodyUsage {
  readonly requests: number
  readonly bytes: number
}

/** Limits the memory of all request bodies. A body that does not fit is refused at once instead of waiting. */
export class BodyLeases {
  readonly #limits: BodyUsage
  readonly #all = { requests: 0, bytes: 0 }
  readonly #callers = new Map<string, { requests: number; bytes: number }>()

  constructor(limits: BodyUsage) {
    this.#limits = limits
  }

  get usage(): BodyUsage {
    return this.#all
  }

  lease(caller: string): BodyLease {
    const [all, callers, limits] = [this.#all, this.#callers, this.#limits]
    let leasedBytes = 0
    /** The usage of all bodies of this caller. `undefined` before the first `grow` and after `release`. */
    let callerUsage: { requests: number; bytes: number } | undefined
    return {
      grow: (more) => {
        const first = callerUsage === undefined ? 1 : 0
        const candidate = callerUsage ?? callers.get(caller) ?? { requests: 0, bytes: 0 }
        if (all.requests + first > limits.requests || all.bytes + more > limits.bytes) return "process"
        // A caller's only body may use more than the share of one caller, because a route may allow large bodies.
        const isOnlyBody = candidate.requests + first === 1
        const fits = (of: keyof BodyUsage, added: number) =>
          candidate[of] + added <= FairShare.allowance(limits[of], all[of] - candidate[of])
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

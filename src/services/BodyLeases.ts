import * as Share from "./Share.ts"

/** The room that is full is that of the whole process, or that of the caller. */
export type NoRoomOf = "process" | "caller"

/** Room for one body: grows with its bytes, given back once. */
export interface BodyLease {
  /** Returns `undefined` where there is room. */
  readonly grow: (bytes: number) => NoRoomOf | undefined
  readonly release: () => void
}

/** Bodies, and the sum of their bytes. */
export interface Held {
  readonly requests: number
  readonly bytes: number
}

/** Counts the memory of all bodies, of which each caller may hold a share. Nothing queues. */
export class BodyLeases {
  readonly #most: Held
  readonly #all = { requests: 0, bytes: 0 }
  readonly #callers = new Map<string, { requests: number; bytes: number }>()

  constructor(most: Held) {
    this.#most = most
  }

  get held(): Held {
    return this.#all
  }

  /** Room for a body of `caller`. */
  lease(caller: string): BodyLease {
    const [all, callers, most] = [this.#all, this.#callers, this.#most]
    let held = 0
    /** The sum of all bodies of the caller, while this one is among them. */
    let theirs: { requests: number; bytes: number } | undefined
    return {
      grow: (more) => {
        const first = theirs === undefined ? 1 : 0
        const ours = theirs ?? callers.get(caller) ?? { requests: 0, bytes: 0 }
        if (all.requests + first > most.requests || all.bytes + more > most.bytes) return "process"
        // the only body of a caller may be as large as its route allows
        const alone = ours.requests + first === 1
        const fits = (of: keyof Held, wanted: number) => ours[of] + wanted <= Share.beside(most[of], all[of] - ours[of])
        if (!alone && !(fits("requests", first) && fits("bytes", more))) return "caller"
        if (theirs === undefined) callers.set(caller, ours)
        theirs = ours
        held += more
        all.requests += first
        all.bytes += more
        ours.requests += first
        ours.bytes += more
        return undefined
      },
      release: () => {
        if (theirs === undefined) return
        all.requests--
        all.bytes -= held
        theirs.requests--
        theirs.bytes -= held
        if (theirs.requests === 0) callers.delete(caller)
        theirs = undefined
        held = 0
      }
    }
  }
}

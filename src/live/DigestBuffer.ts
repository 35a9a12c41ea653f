import * as Digest from "./Digest.ts"

/** An occurrence that is described when it is sent, and not at all if later ones take its place. */
type Describe = () => Digest.Detail

interface Ring {
  count: number
  readonly latest: Array<Describe>
}

/** Collects the occurrences of a topic since the last batch. Its size does not depend on how much happened. */
export class DigestBuffer {
  readonly #most: number
  #rings = new Map<string, Ring>()
  /** Occurrences that could not be sent. They are older than those in the rings. */
  #unsent: Digest.Digest = Digest.empty

  constructor(most: number) {
    this.#most = most
  }

  add(kind: string, describe: Describe): void {
    let ring = this.#rings.get(kind)
    if (ring === undefined) {
      ring = { count: 0, latest: [] }
      this.#rings.set(kind, ring)
    }
    ring.latest[ring.count % this.#most] = describe
    ring.count++
  }

  /** Returns everything that was added or put back, and forgets it. `undefined`: there is nothing. */
  take(): Digest.Digest | undefined {
    const rings = this.#rings
    const unsent = this.#unsent
    this.clear()
    if (rings.size === 0) return unsent === Digest.empty ? undefined : unsent
    const added: Record<string, Digest.Occurrences> = {}
    for (const [kind, { count, latest }] of rings) {
      const oldest = count > latest.length ? count % latest.length : 0
      const inOrder = [...latest.slice(oldest), ...latest.slice(0, oldest)]
      added[kind] = { count, latest: inOrder.map((describe) => describe()) }
    }
    return unsent === Digest.empty ? added : Digest.merge(unsent, added, this.#most)
  }

  putBack(digest: Digest.Digest): void {
    this.#unsent = Digest.merge(digest, this.#unsent, this.#most)
  }

  clear(): void {
    this.#rings = new Map()
    this.#unsent = Digest.empty
  }
}

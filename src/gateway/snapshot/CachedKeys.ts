import { Option } from "effect"
import type { KeyRecord } from "./KeyRecord.ts"

/** The least recently used key is evicted first. A record takes about a kilobyte. */
const maxKeys = 50_000
/** Separate from `maxKeys`, so that a flood of wrong keys evicts no valid one. */
const maxUnknownKeys = 10_000

/** Keys in memory by the digest of their secret, and digests that belong to no key. */
export class CachedKeys {
  readonly #records = new Map<string, KeyRecord>()
  /** By key id. A rotated key has two digests, and briefly three until the notice arrives. */
  readonly #digestsById = new Map<string, ReadonlyArray<string>>()
  readonly #unknownUntil = new Map<string, number>()
  #mostRecent: string | undefined

  find(digest: string): KeyRecord | undefined {
    const record = this.#records.get(digest)
    // Requests of one key come in runs: the most recent key needs no reordering.
    if (record !== undefined && digest !== this.#mostRecent) this.add(digest, record)
    return record
  }

  isUnknown(digest: string, now: number): boolean {
    return (this.#unknownUntil.get(digest) ?? 0) > now
  }

  add(digest: string, record: KeyRecord): void {
    this.#mostRecent = digest
    this.#records.delete(digest)
    this.#records.set(digest, record)
    const digests = this.#digestsById.get(record.id)
    if (digests === undefined) this.#digestsById.set(record.id, [digest])
    else if (!digests.includes(digest)) this.#digestsById.set(record.id, [...digests, digest])
    if (this.#records.size > maxKeys) dropOldest(this.#records, (oldest) => this.#evict(oldest))
  }

  addUnknown(digest: string, until: number): void {
    this.#unknownUntil.delete(digest)
    this.#unknownUntil.set(digest, until)
    if (this.#unknownUntil.size > maxUnknownKeys) {
      dropOldest(this.#unknownUntil, (oldest) => this.#unknownUntil.delete(oldest))
    }
  }

  forget(id: string): void {
    this.#unknownUntil.clear()
    for (const digest of this.#digestsById.get(id) ?? []) this.#evict(digest)
  }

  forgetProject(projectId: string): void {
    for (const [digest, record] of this.#records) {
      if (Option.contains(record.projectId, projectId)) this.#evict(digest)
    }
  }

  forgetAll(): void {
    this.#unknownUntil.clear()
    this.#records.clear()
    this.#digestsById.clear()
  }

  #evict(digest: string): void {
    const record = this.#records.get(digest)
    if (record !== undefined) {
      const others = this.#digestsById.get(record.id)?.filter((other) => other !== digest) ?? []
      if (others.length === 0) this.#digestsById.delete(record.id)
      else this.#digestsById.set(record.id, others)
    }
    this.#records.delete(digest)
  }
}

const dropOldest = <A>(map: ReadonlyMap<string, A>, drop: (key: string) => void): void => {
  const oldest = map.keys().next().value
  if (oldest !== undefined) drop(oldest)
}

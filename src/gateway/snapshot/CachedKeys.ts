import { Option } from "effect"
import type { KeyRecord } from "./KeyRecord.ts"

/** A full cache evicts the least recently used key. A record takes about a kilobyte. */
const maxKeys = 50_000
/** Unknown keys have a separate limit, so that a flood of them cannot evict valid keys. */
const maxUnknownKeys = 10_000

/** Caches keys by the digest of their secret. It also remembers digests that belong to no key. */
export class CachedKeys {
  readonly #records = new Map<string, KeyRecord>()
  /** Digests by key id. A key has one digest per valid secret: after a rotation, the old and the new one. */
  readonly #digestsById = new Map<string, ReadonlyArray<string>>()
  readonly #unknownUntil = new Map<string, number>()
  #mostRecent: string | undefined

  find(digest: string): KeyRecord | undefined {
    const record = this.#records.get(digest)
    // Many requests in a row use the same key, so the most recent key is not moved to the end again.
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

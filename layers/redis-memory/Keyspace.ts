import { type Member, SortedSet } from "./SortedSet.ts"
import type { Stream } from "./Stream.ts"

/** An error reply. Its first word is the error kind, as in Redis. */
export class ErrorReply extends Error {}

export const refuse = (message: string): never => {
  throw new ErrorReply(message)
}

interface Values {
  string: string
  hash: Map<string, string>
  list: Array<string>
  set: Set<string>
  zset: SortedSet
  stream: Stream
}

type Kind = keyof Values

type StoredValues = Omit<Values, "zset"> & { readonly zset: ReadonlyArray<Member> }

/** A key as a snapshot contains it. It shares nothing with the keyspace that could change. */
export type StoredKey = {
  [K in Kind]: {
    readonly key: string
    readonly deadline: number | undefined
    readonly kind: K
    readonly value: StoredValues[K]
  }
}[Kind]

/** The maximum number of keys, instead of Redis's `maxmemory`. Further keys are refused. */
const maxKeys = 1_000_000

/** Each command checks this number of keys that have an expiry, and deletes the expired ones. */
const sweepPerCommand = 16

/** All keys and their values. As in Redis, the time does not change during a command or script. */
export class Keyspace {
  readonly #kinds = new Map<string, Kind>()
  readonly #deadlines = new Map<string, number>()
  readonly #values: { readonly [K in Kind]: Map<string, Values[K]> } = {
    string: new Map(),
    hash: new Map(),
    list: new Map(),
    set: new Map(),
    zset: new Map(),
    stream: new Map()
  }
  #sweeper = this.#deadlines.entries()
  #now = 0
  /** While a log is replayed, expired keys may take the places of others, because nobody has read them. */
  isReplaying = false

  get now(): number {
    return this.#now
  }

  advance(now: number): void {
    this.#now = now
    for (let looked = 0; looked < sweepPerCommand; looked++) {
      const next = this.#sweeper.next()
      if (next.done) {
        this.#sweeper = this.#deadlines.entries()
        return
      }
      if (next.value[1] <= now) this.#forget(next.value[0])
    }
  }

  kind(key: string): Kind | undefined {
    const deadline = this.#deadlines.get(key)
    if (deadline !== undefined && deadline <= this.#now) this.#forget(key)
    return this.#kinds.get(key)
  }

  read<K extends Kind>(key: string, kind: K): Values[K] | undefined {
    const found = this.kind(key)
    if (found === undefined) return undefined
    return found === kind
      ? this.#values[kind].get(key)
      : refuse("WRONGTYPE Operation against a key holding the wrong kind of value")
  }

  write<K extends Kind>(key: string, kind: K, value: Values[K]): void {
    const found = this.kind(key)
    if (found === undefined && this.#kinds.size >= maxKeys && !this.isReplaying) {
      refuse("OOM command not allowed when used memory > 'maxmemory'.")
    }
    if (found !== undefined && found !== kind) this.#values[found].delete(key)
    this.#kinds.set(key, kind)
    this.#values[kind].set(key, value)
  }

  obtain<K extends Kind>(key: string, kind: K, create: () => Values[K]): Values[K] {
    const found = this.read(key, kind)
    if (found !== undefined) return found
    const value = create()
    this.write(key, kind, value)
    return value
  }

  delete(key: string): boolean {
    const existed = this.kind(key) !== undefined
    this.#forget(key)
    return existed
  }

  /** Copies the names of all keys, also of expired ones. */
  get names(): ReadonlyArray<string> {
    return [...this.#kinds.keys()]
  }

  deadline(key: string): number | undefined {
    return this.#deadlines.get(key)
  }

  expireAt(key: string, deadline: number): void {
    if (deadline <= this.#now) this.#forget(key)
    else this.#deadlines.set(key, deadline)
  }

  persist(key: string): void {
    this.#deadlines.delete(key)
  }

  /** Copies all keys at once. */
  capture(): ReadonlyArray<StoredKey> {
    const { hash, list, set, stream, string, zset } = this.#values
    const part = <K extends Kind, A>(kind: K, values: Map<string, A>, copy: (value: A) => StoredValues[K]) =>
      Array.from(values, ([key, value]) => ({ key, deadline: this.#deadlines.get(key), kind, value: copy(value) }))
    return [
      ...part("string", string, (text) => text),
      ...part("hash", hash, (fields) => new Map(fields)),
      ...part("list", list, (items) => items.slice()),
      ...part("set", set, (members) => new Set(members)),
      ...part("zset", zset, (members) => members.members),
      ...part("stream", stream, ({ entries, last }) => ({ entries: entries.slice(), last }))
    ]
  }

  restore(stored: StoredKey): void {
    const { deadline, key } = stored
    if (stored.kind === "zset") this.write(key, "zset", SortedSet.of(stored.value))
    else this.#restoreValue(stored)
    if (deadline !== undefined) this.#deadlines.set(key, deadline)
  }

  #restoreValue<K extends Exclude<Kind, "zset">>({ key, kind, value }: { key: string; kind: K; value: Values[K] }) {
    this.write(key, kind, value)
  }

  #forget(key: string): void {
    const kind = this.#kinds.get(key)
    if (kind !== undefined) this.#values[kind].delete(key)
    this.#kinds.delete(key)
    this.#deadlines.delete(key)
  }
}

import {
  type Arguments,
  type Commands,
  type Server,
  syntaxError,
  unknownOption,
  wholeNumber,
  wrongArity
} from "./Arguments.ts"
import { refuse } from "./Keyspace.ts"
import type { Entry, Id, Stream } from "./Stream.ts"

const sequenceBits = 64n
const lastSequence = 2n ** sequenceBits - 1n
const lastId = 2n ** (2n * sequenceBits) - 1n

const empty = (): Stream => ({ entries: [], last: 0n })

const refuseInvalidId = (): never => refuse("ERR Invalid stream ID specified as stream command argument")

const parseIdPart = (text: string): bigint => {
  const value = /^\d{1,20}$/.test(text) ? BigInt(text) : refuseInvalidId()
  return value > lastSequence ? refuseInvalidId() : value
}

const parseId = (text: string, missingSequence: bigint): Id => {
  const [milliseconds = "", sequence, ...more] = text.split("-")
  if (more.length > 0) return refuseInvalidId()
  return (
    (parseIdPart(milliseconds) << sequenceBits) | (sequence === undefined ? missingSequence : parseIdPart(sequence))
  )
}

const formatId = (id: Id): string => `${id >> sequenceBits}-${id & lastSequence}`

const indexOfId = (entries: ReadonlyArray<Entry>, id: Id): number => {
  let [low, high] = [0, entries.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (entries[middle]!.id < id) low = middle + 1
    else high = middle
  }
  return low
}

/** Parses the threshold of XADD and XTRIM. `~` (approximate trimming) is treated like `=`. */
const threshold = (options: Arguments, name: string): { readonly text: string; readonly used: number } => {
  const exact = options[1] === "=" || options[1] === "~" ? 2 : 1
  const text = options[exact]
  if (text === undefined) return syntaxError()
  return options[exact + 1]?.toUpperCase() === "LIMIT" ? unknownOption(name, "LIMIT") : { text, used: exact + 1 }
}

const maxLength = (text: string): number => {
  const keep = wholeNumber(text)
  return keep < 0 ? refuse("ERR The MAXLEN argument must be >= 0.") : keep
}

const trim = (stream: Stream, keep: number): number =>
  stream.entries.splice(0, Math.max(stream.entries.length - keep, 0)).length

const nextId = (text: string, last: Id, now: number): Id => {
  if (text === "*") {
    const fresh = BigInt(now) << sequenceBits
    return fresh > last ? fresh : last + 1n
  }
  if (text.endsWith("-*")) {
    const first = parseIdPart(text.slice(0, -2)) << sequenceBits
    const id = last >= first && last < (first | lastSequence) ? last + 1n : first === 0n ? 1n : first
    return id > last ? id : refuseSmallerId()
  }
  const id = parseId(text, 0n)
  return id > last ? id : refuseSmallerId()
}

const refuseSmallerId = (): never =>
  refuse("ERR The ID specified in XADD is equal or smaller than the target stream top item")

const add = ({ keys }: Server, [key = "", ...rest]: Arguments, name: string) => {
  const option = rest[0]?.toUpperCase()
  if (option === "MINID" || option === "NOMKSTREAM") unknownOption(name, option)
  const bound = option === "MAXLEN" ? threshold(rest, name) : undefined
  const keep = bound === undefined ? undefined : maxLength(bound.text)
  const [id = "", ...fields] = rest.slice(bound?.used ?? 0)
  const given = id === "*" ? undefined : parseId(id.endsWith("-*") ? id.slice(0, -2) : id, 0n)
  if (fields.length === 0 || fields.length % 2 === 1) wrongArity(name)
  if (given === 0n && !id.endsWith("-*")) refuse("ERR The ID specified in XADD must be greater than 0-0")
  const known = keys.read(key, "stream")
  const next = nextId(id, known?.last ?? 0n, keys.now)
  const stream = known ?? keys.obtain(key, "stream", empty)
  stream.entries.push({ id: next, fields })
  stream.last = next
  if (keep !== undefined) trim(stream, keep)
  return formatId(next)
}

const rangeBound = (text: string, end: "start" | "end"): Id => {
  if (text === "-") return 0n
  if (text === "+") return lastId
  const exclusive = text.startsWith("(")
  const id = parseId(exclusive ? text.slice(1) : text, end === "start" ? 0n : lastSequence)
  if (!exclusive) return id
  if (id === (end === "start" ? lastId : 0n)) return refuse(`ERR invalid ${end} ID for the interval`)
  return end === "start" ? id + 1n : id - 1n
}

const range = ({ keys }: Server, key: string, from: string, to: string, options: Arguments, newestFirst: boolean) => {
  const [start, end] = [rangeBound(from, "start"), rangeBound(to, "end")]
  let count: number | undefined
  for (let i = 0; i < options.length; i += 2) {
    const text = options[i + 1]
    if (options[i]!.toUpperCase() !== "COUNT" || text === undefined) return syntaxError()
    count = Math.max(wholeNumber(text), 0)
  }
  const stream = keys.read(key, "stream")
  if (stream === undefined) return []
  if (count === 0) return null
  const [low, high] = [indexOfId(stream.entries, start), indexOfId(stream.entries, end + 1n)]
  const page = newestFirst
    ? stream.entries.slice(count === undefined ? low : Math.max(low, high - count), Math.max(low, high)).reverse()
    : stream.entries.slice(low, count === undefined ? high : Math.min(high, low + count))
  return page.map(({ id, fields }) => [formatId(id), fields])
}

export const streams: Commands = {
  XADD: { arity: -5, run: add },
  XRANGE: {
    arity: -4,
    run: (server, [key = "", from = "", to = "", ...options]) => range(server, key, from, to, options, false)
  },
  XREVRANGE: {
    arity: -4,
    run: (server, [key = "", to = "", from = "", ...options]) => range(server, key, from, to, options, true)
  },
  XLEN: { arity: 2, run: ({ keys }, [key = ""]) => keys.read(key, "stream")?.entries.length ?? 0 },
  XDEL: {
    arity: -3,
    run: ({ keys }, [key = "", ...texts]) => {
      const entries = keys.read(key, "stream")?.entries
      if (entries === undefined) return 0
      const ids = texts.map((text) => parseId(text, 0n))
      return ids.filter((id) => {
        const at = indexOfId(entries, id)
        return entries[at]?.id === id && entries.splice(at, 1).length === 1
      }).length
    }
  },
  XTRIM: {
    arity: -4,
    run: ({ keys }, [key = "", ...options], name) => {
      const strategy = options[0]?.toUpperCase()
      if (strategy !== "MINID" && strategy !== "MAXLEN") syntaxError()
      const { text, used } = threshold(options, name)
      const [keep, oldest] = strategy === "MAXLEN" ? [maxLength(text), 0n] : [undefined, parseId(text, 0n)]
      if (used < options.length) syntaxError()
      const stream = keys.read(key, "stream")
      if (stream === undefined) return 0
      return trim(stream, keep ?? stream.entries.length - indexOfId(stream.entries, oldest))
    }
  }
}

import {
  type Arguments,
  type Commands,
  float,
  pairs,
  type Server,
  syntaxError,
  unknownOption,
  wholeNumber
} from "./Arguments.ts"
import { refuse } from "./Keyspace.ts"
import { type LexBound, type Member, type Range, SortedSet } from "./SortedSet.ts"

const scoreRange = (min: string, max: string): Range => {
  const bound = (text: string) => float(text.startsWith("(") ? text.slice(1) : text, "ERR min or max is not a float")
  const low = bound(min)
  const high = bound(max)
  return {
    above: min.startsWith("(") ? (score) => score > low : (score) => score >= low,
    below: max.startsWith("(") ? (score) => score < high : (score) => score <= high
  }
}

/** The members are expected to have equal scores, as Redis requires. */
const lexBound = (text: string, end: "min" | "max"): LexBound => {
  if (text === "-" || text === "+") return { after: text }
  if (!/^[[(]/.test(text)) return refuse("ERR min or max not valid string range item")
  const isIncluded = text.startsWith("[")
  return { member: text.slice(1), isAfterEqual: (end === "max") === isIncluded }
}

const formatScore = (score: number): string => (Number.isFinite(score) ? String(score) : score > 0 ? "inf" : "-inf")

const add = ({ keys }: Server, [key = "", ...rest]: Arguments, name: string) => {
  const conditions = new Set<string>()
  let first = 0
  for (; first < rest.length; first++) {
    const option = rest[first]!.toUpperCase()
    if (option === "GT" || option === "LT" || option === "CH" || option === "INCR") unknownOption(name, option)
    if (option !== "NX" && option !== "XX") break
    conditions.add(option)
  }
  const elements = rest.slice(first)
  if (elements.length === 0 || elements.length % 2 === 1) syntaxError()
  if (conditions.size === 2) refuse("ERR XX and NX options at the same time are not compatible")
  const members = pairs(elements).map(([score, member]): Member => [member, float(score)])
  if (conditions.has("XX") && keys.read(key, "zset") === undefined) return 0
  const set = keys.obtain(key, "zset", () => new SortedSet())
  const before = set.size
  for (const [member, score] of members) {
    const exists = set.score(member) !== undefined
    if (!(conditions.has("NX") && exists) && !(conditions.has("XX") && !exists)) set.put(member, score)
  }
  return set.size - before
}

const byScore =
  (direction: "ascending" | "descending") =>
  ({ keys }: Server, [key = "", from = "", to = "", ...options]: Arguments) => {
    let scores = false
    let [offset, limit] = [0, -1]
    for (let i = 0; i < options.length; i++) {
      const option = options[i]!.toUpperCase()
      const [start, count] = [options[i + 1], options[i + 2]]
      if (option === "WITHSCORES") scores = true
      else if (option === "LIMIT" && start !== undefined && count !== undefined) {
        offset = wholeNumber(start)
        limit = wholeNumber(count)
        i += 2
      } else syntaxError()
    }
    const wanted = direction === "ascending" ? scoreRange(from, to) : scoreRange(to, from)
    const ascending = keys.read(key, "zset")?.inRange(wanted) ?? []
    const found = direction === "ascending" ? ascending : ascending.toReversed()
    const page = offset < 0 ? [] : found.slice(offset, limit < 0 ? undefined : offset + limit)
    return scores ? page.flatMap(([member, score]) => [member, formatScore(score)]) : page.map(([member]) => member)
  }

const remove = ({ keys }: Server, key: string, select: (set: SortedSet) => ReadonlyArray<string>): number => {
  const set = keys.read(key, "zset")
  if (set === undefined) return 0
  const removed = select(set).filter((member) => set.remove(member)).length
  if (set.size === 0) keys.delete(key)
  return removed
}

export const sortedSets: Commands = {
  ZADD: { arity: -4, run: add },
  ZREM: { arity: -3, run: (server, [key = "", ...members]) => remove(server, key, () => members) },
  ZSCORE: {
    arity: 3,
    run: ({ keys }, [key = "", member = ""]) => {
      const score = keys.read(key, "zset")?.score(member)
      return score === undefined ? null : formatScore(score)
    }
  },
  ZLEXCOUNT: {
    arity: 4,
    run: ({ keys }, [key = "", min = "", max = ""]) => {
      const set = keys.read(key, "zset")
      return set === undefined ? 0 : Math.max(0, set.rank(lexBound(max, "max")) - set.rank(lexBound(min, "min")))
    }
  },
  ZCARD: { arity: 2, run: ({ keys }, [key = ""]) => keys.read(key, "zset")?.size ?? 0 },
  ZRANGEBYSCORE: { arity: -4, run: byScore("ascending") },
  ZREVRANGEBYSCORE: { arity: -4, run: byScore("descending") },
  ZREMRANGEBYSCORE: {
    arity: 4,
    run: (server, [key = "", min = "", max = ""]) => {
      const wanted = scoreRange(min, max)
      return remove(server, key, (set) => set.inRange(wanted).map(([member]) => member))
    }
  }
}

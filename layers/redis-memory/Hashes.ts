import { type Commands, checkedSum, integer, pairs, wrongArity } from "./Arguments.ts"

const empty: ReadonlyMap<string, string> = new Map()

export const hashes: Commands = {
  HSET: {
    arity: -4,
    run: ({ keys }, [key = "", ...fields], name) => {
      if (fields.length % 2 === 1) wrongArity(name)
      const hash = keys.obtain(key, "hash", () => new Map())
      const before = hash.size
      for (const [field, value] of pairs(fields)) hash.set(field, value)
      return hash.size - before
    }
  },
  HGET: { arity: 3, run: ({ keys }, [key = "", field = ""]) => keys.read(key, "hash")?.get(field) ?? null },
  HMGET: {
    arity: -3,
    run: ({ keys }, [key = "", ...fields]) => {
      const hash = keys.read(key, "hash") ?? empty
      return fields.map((field) => hash.get(field) ?? null)
    }
  },
  HGETALL: { arity: 2, run: ({ keys }, [key = ""]) => [...(keys.read(key, "hash") ?? empty)].flat() },
  HKEYS: { arity: 2, run: ({ keys }, [key = ""]) => [...(keys.read(key, "hash") ?? empty).keys()] },
  HVALS: { arity: 2, run: ({ keys }, [key = ""]) => [...(keys.read(key, "hash") ?? empty).values()] },
  HLEN: { arity: 2, run: ({ keys }, [key = ""]) => keys.read(key, "hash")?.size ?? 0 },
  HDEL: {
    arity: -3,
    run: ({ keys }, [key = "", ...fields]) => {
      const hash = keys.read(key, "hash")
      if (hash === undefined) return 0
      const removed = fields.filter((field) => hash.delete(field)).length
      if (hash.size === 0) keys.delete(key)
      return removed
    }
  },
  HINCRBY: {
    arity: 4,
    run: ({ keys }, [key = "", field = "", by = ""]) => {
      const step = integer(by)
      const before = keys.read(key, "hash")?.get(field) ?? "0"
      const total = checkedSum(integer(before, "ERR hash value is not an integer"), step)
      keys.obtain(key, "hash", () => new Map()).set(field, String(total))
      return Number(total)
    }
  }
}

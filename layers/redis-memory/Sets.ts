import type { Commands } from "./Arguments.ts"

export const sets: Commands = {
  SADD: {
    arity: -3,
    run: ({ keys }, [key = "", ...members]) => {
      const set = keys.obtain(key, "set", () => new Set())
      const before = set.size
      for (const member of members) set.add(member)
      return set.size - before
    }
  },
  SREM: {
    arity: -3,
    run: ({ keys }, [key = "", ...members]) => {
      const set = keys.read(key, "set")
      if (set === undefined) return 0
      const removed = members.filter((member) => set.delete(member)).length
      if (set.size === 0) keys.delete(key)
      return removed
    }
  },
  SMEMBERS: { arity: 2, run: ({ keys }, [key = ""]) => [...(keys.read(key, "set") ?? [])] },
  SCARD: { arity: 2, run: ({ keys }, [key = ""]) => keys.read(key, "set")?.size ?? 0 }
}

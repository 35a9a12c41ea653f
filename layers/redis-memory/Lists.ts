import { type Arguments, type Commands, type Server, sliceBetween, wholeNumber } from "./Arguments.ts"
import { refuse } from "./Keyspace.ts"

const push =
  (end: "head" | "tail") =>
  ({ keys }: Server, [key = "", ...items]: Arguments) => {
    const list = keys.obtain(key, "list", () => [])
    return end === "tail" ? list.push(...items) : list.unshift(...items.reverse())
  }

export const lists: Commands = {
  RPUSH: { arity: -3, run: push("tail") },
  LPUSH: { arity: -3, run: push("head") },
  LLEN: { arity: 2, run: ({ keys }, [key = ""]) => keys.read(key, "list")?.length ?? 0 },
  LSET: {
    arity: 4,
    run: ({ keys }, [key = "", index = "", item = ""]) => {
      const list = keys.read(key, "list") ?? refuse("ERR no such key")
      const at = wholeNumber(index)
      const position = at < 0 ? list.length + at : at
      if (position < 0 || position >= list.length) return refuse("ERR index out of range")
      list[position] = item
      return "OK"
    }
  },
  LRANGE: {
    arity: 4,
    run: ({ keys }, [key = "", start = "", stop = ""]) => {
      const part = sliceBetween(start, stop)
      return part(keys.read(key, "list") ?? [])
    }
  },
  LTRIM: {
    arity: 4,
    run: ({ keys }, [key = "", start = "", stop = ""]) => {
      const part = sliceBetween(start, stop)
      const kept = part(keys.read(key, "list") ?? [])
      if (kept.length === 0) keys.delete(key)
      else keys.write(key, "list", kept)
      return "OK"
    }
  }
}

import { type Arguments, type Commands, checkedSum, integer, type Server, syntaxError } from "./Arguments.ts"
import { refuse } from "./Keyspace.ts"

type Lifetime = { readonly option: "EX" | "PX"; readonly text: string } | { readonly option: "KEEPTTL" }

const set = ({ keys }: Server, [key = "", value = "", ...options]: Arguments) => {
  let only: "NX" | "XX" | undefined
  let lifetime: Lifetime | undefined
  for (let i = 0; i < options.length; i++) {
    const option = options[i]!.toUpperCase()
    if (option === "NX" || option === "XX") only = (only ?? option) === option ? option : syntaxError()
    else if (option === "EX" || option === "PX" || option === "KEEPTTL") {
      if (lifetime !== undefined && lifetime.option !== option) syntaxError()
      lifetime = option === "KEEPTTL" ? { option } : { option, text: options[++i] ?? syntaxError() }
    } else syntaxError()
  }
  const delay = lifetime === undefined || lifetime.option === "KEEPTTL" ? undefined : milliseconds(lifetime)
  const exists = keys.kind(key) !== undefined
  if ((only === "NX" && exists) || (only === "XX" && !exists)) return null
  keys.write(key, "string", value)
  if (delay !== undefined) keys.expireAt(key, keys.now + delay)
  else if (lifetime === undefined) keys.persist(key)
  return "OK"
}

const milliseconds = ({ option, text }: Exclude<Lifetime, { option: "KEEPTTL" }>): number => {
  const value = Number(integer(text)) * (option === "EX" ? 1_000 : 1)
  return value <= 0 || value > Number.MAX_SAFE_INTEGER ? refuse("ERR invalid expire time in 'set' command") : value
}

const add = ({ keys }: Server, key: string, by: bigint): number => {
  const total = checkedSum(integer(keys.read(key, "string") ?? "0"), by)
  keys.write(key, "string", String(total))
  return Number(total)
}

const decrement = (by: bigint): bigint => (by === -(2n ** 63n) ? refuse("ERR decrement would overflow") : -by)

export const strings: Commands = {
  GET: { arity: 2, run: ({ keys }, [key = ""]) => keys.read(key, "string") ?? null },
  MGET: {
    arity: -2,
    // MGET returns nil for a key of another type instead of an error.
    run: ({ keys }, names) =>
      names.map((key) => (keys.kind(key) === "string" ? (keys.read(key, "string") ?? null) : null))
  },
  SET: { arity: -3, run: set },
  INCR: { arity: 2, run: (server, [key = ""]) => add(server, key, 1n) },
  INCRBY: { arity: 3, run: (server, [key = "", by = ""]) => add(server, key, integer(by)) },
  DECRBY: { arity: 3, run: (server, [key = "", by = ""]) => add(server, key, decrement(integer(by))) }
}

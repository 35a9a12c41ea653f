import { randomBytes } from "node:crypto"
import { type Arguments, type Commands, integer, type Server, unknownOption, wholeNumber } from "./Arguments.ts"
import { refuse } from "./Keyspace.ts"

const expire =
  (unit: number) =>
  ({ keys }: Server, [key = "", time = "", option]: Arguments, name: string) => {
    const delay = Number(integer(time)) * unit
    if (!Number.isSafeInteger(keys.now + delay)) refuse(`ERR invalid expire time in '${name.toLowerCase()}' command`)
    if (option !== undefined) unknownOption(name, option)
    if (keys.kind(key) === undefined) return 0
    keys.expireAt(key, keys.now + delay)
    return 1
  }

const remaining =
  (unit: number) =>
  ({ keys }: Server, [key = ""]: Arguments) => {
    if (keys.kind(key) === undefined) return -2
    const deadline = keys.deadline(key)
    return deadline === undefined ? -1 : Math.round((deadline - keys.now) / unit)
  }

/** A pattern is a text with a star at its end. A cursor is a place in the order in which keys were made. */
const scan = ({ keys }: Server, [cursor = "", ...options]: Arguments, name: string) => {
  let [prefix, count] = ["", 10]
  for (let i = 0; i < options.length; i += 2) {
    const [option = "", value = ""] = [options[i]?.toUpperCase(), options[i + 1]]
    if (option === "MATCH" && /^[^*?[\\]*\*$/.test(value)) prefix = value.slice(0, -1)
    else if (option === "COUNT") count = Math.max(1, wholeNumber(value))
    else unknownOption(name, option)
  }
  const from = wholeNumber(cursor)
  const all = keys.names
  const found = all.slice(from, from + count).filter((key) => key.startsWith(prefix) && keys.kind(key) !== undefined)
  return [from + count >= all.length ? "0" : String(from + count), found]
}

/** As with a server, every start has another replication id, because a power cut may have lost the last second. */
const replication = `# Replication\r\nrole:master\r\nmaster_replid:${randomBytes(20).toString("hex")}\r\n`

const count = (of: Arguments, holds: (key: string) => boolean) =>
  of.reduce((total, key) => (holds(key) ? total + 1 : total), 0)

export const keys: Commands = {
  PING: { arity: -1, run: (_, [message]) => message ?? "PONG" },
  DEL: { arity: -2, run: ({ keys }, names) => count(names, (key) => keys.delete(key)) },
  EXISTS: { arity: -2, run: ({ keys }, names) => count(names, (key) => keys.kind(key) !== undefined) },
  EXPIRE: { arity: -3, run: expire(1_000) },
  PEXPIRE: { arity: -3, run: expire(1) },
  TTL: { arity: 2, run: remaining(1_000) },
  PTTL: { arity: 2, run: remaining(1) },
  TYPE: { arity: 2, run: ({ keys }, [key = ""]) => keys.kind(key) ?? "none" },
  TIME: { arity: 1, run: ({ keys }) => [String(Math.floor(keys.now / 1_000)), String((keys.now % 1_000) * 1_000)] },
  INFO: {
    arity: 2,
    run: (_, [section = ""], name) =>
      section.toLowerCase() === "replication" ? replication : unknownOption(name, section)
  },
  SCAN: { arity: -2, run: scan },
  PUBLISH: { arity: 3, run: ({ publish }, [channel = "", message = ""]) => publish(channel, message) }
}

import type { Reply } from "../../src/services/Redis.ts"
import { type Keyspace, refuse } from "./Keyspace.ts"

export interface Server {
  readonly keys: Keyspace
  readonly publish: (channel: string, message: string) => number
}

export type Arguments = ReadonlyArray<string>

/** As in Redis, `arity` includes the name of the command. A negative number is a minimum. */
interface Command {
  readonly arity: number
  readonly run: (server: Server, args: Arguments, name: string) => Reply
}

export type Commands = Readonly<Record<string, Command>>

export const wrongArity = (name: string): never =>
  refuse(`ERR wrong number of arguments for '${name.toLowerCase()}' command`)

export const syntaxError = (): never => refuse("ERR syntax error")

/** Refuses an option of Redis that the in-memory Redis does not implement. */
export const unknownOption = (name: string, option: string): never =>
  refuse(`ERR the in-memory Redis does not implement ${option} of ${name}`)

const lowest = -(2n ** 63n)
const highest = 2n ** 63n - 1n

export const integer = (text: string, complaint = "ERR value is not an integer or out of range"): bigint => {
  if (!/^(0|-?[1-9]\d{0,18})$/.test(text)) return refuse(complaint)
  const value = BigInt(text)
  return value < lowest || value > highest ? refuse(complaint) : value
}

export const wholeNumber = (text: string): number => Number(integer(text))

export const checkedSum = (left: bigint, right: bigint): bigint => {
  const total = left + right
  return total < lowest || total > highest ? refuse("ERR increment or decrement would overflow") : total
}

export const float = (text: string, complaint = "ERR value is not a valid float"): number => {
  const infinite = /^([+-]?)inf(inity)?$/i.exec(text)
  if (infinite !== null) return infinite[1] === "-" ? -Infinity : Infinity
  return /^[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : refuse(complaint)
}

/** Negative indexes count from the end, as in Redis. */
export const sliceBetween = (start: string, stop: string): (<A>(sequence: ReadonlyArray<A>) => Array<A>) => {
  const [from, to] = [wholeNumber(start), wholeNumber(stop)]
  return (sequence) => {
    const position = (at: number) => Math.max(at < 0 ? sequence.length + at : at, 0)
    return sequence.slice(position(from), to < 0 ? Math.max(sequence.length + to + 1, 0) : to + 1)
  }
}

export const pairs = (flat: Arguments): ReadonlyArray<readonly [string, string]> => {
  const out: Array<readonly [string, string]> = []
  for (let i = 0; i + 1 < flat.length; i += 2) out.push([flat[i]!, flat[i + 1]!])
  return out
}

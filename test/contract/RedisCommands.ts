import fc from "fast-check"

/** A command of the in-memory Redis with random arguments: its keys come first. */
export interface RandomCommand {
  readonly name: string
  readonly keys: ReadonlyArray<string>
  readonly rest: ReadonlyArray<string | number>
}

const key = fc.constantFrom("k1", "k2", "k3")
const text = fc.constantFrom("", "a", "b", "c", "10", "-3", "naïve ☃", "🚀", "with space")
const member = fc.constantFrom("m", "n", "o", "é", "🚀", "｡")
const small = fc.integer({ min: -6, max: 6 })
const integer = fc.oneof(
  { weight: 8, arbitrary: small },
  fc.constantFrom("007", "1.5", "", " 1", "x", "9223372036854775807", "-9223372036854775808", "9223372036854775808")
)
const score = fc.oneof(
  { weight: 8, arbitrary: small },
  fc.constantFrom("inf", "-inf", "+inf", "2.5", "1e3", "x", "nan")
)
const bound = fc.oneof(
  score,
  small.map((n) => `(${n}`)
)
const id = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.nat(4), fc.nat(4)).map(([ms, sequence]) => `${ms}-${sequence}`) },
  fc.nat(4),
  fc.nat(4).map((ms) => `${ms}-*`),
  fc.constantFrom("x", "1-x", "1-2-3", "")
)
const edge = fc.oneof(
  id,
  fc.constantFrom("-", "+"),
  id.map((id) => `(${id}`)
)

type Argument = fc.Arbitrary<string | number | ReadonlyArray<string | number>>

const command = (name: string, ...args: ReadonlyArray<Argument>): fc.Arbitrary<RandomCommand> =>
  fc.tuple(key, ...args).map(([key, ...rest]) => ({ name, keys: [key], rest: rest.flat() }))

const optional = (...choices: ReadonlyArray<Argument>): Argument =>
  fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, ...choices)

const words = (...args: ReadonlyArray<Argument>): Argument => fc.tuple(...args).map((args) => args.flat())

const some = (item: Argument, max = 3): Argument =>
  fc.array(item, { minLength: 1, maxLength: max }).map((items) => items.flat())

const lifetime = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(100_000, 500_000) },
  fc.constantFrom(0, -1, "x", "1.5")
)

const generic: ReadonlyArray<fc.Arbitrary<RandomCommand>> = [
  fc
    .constantFrom("DEL", "EXISTS", "MGET")
    .chain((name) => fc.array(key, { maxLength: 3 }).map((keys): RandomCommand => ({ name, keys, rest: [] }))),
  command("EXPIRE", lifetime),
  command("PEXPIRE", lifetime),
  command("TTL"),
  command("PTTL"),
  command("TYPE"),
  // A wrong number of arguments, whatever the command.
  fc
    .constantFrom("GET", "SET", "INCR", "HSET", "HGET", "ZADD", "RPUSH", "SADD", "XADD", "XRANGE", "TTL", "PUBLISH")
    .map((name): RandomCommand => ({ name, keys: [], rest: [] }))
]

export const families: Readonly<Record<string, ReadonlyArray<fc.Arbitrary<RandomCommand>>>> = {
  strings: [
    command("GET"),
    command(
      "SET",
      text,
      some(
        fc.oneof(fc.constantFrom("NX", "XX", "nx", "KEEPTTL", "BAD"), fc.tuple(fc.constantFrom("EX", "px"), lifetime))
      )
    ),
    command("SET", text),
    command("SET", integer),
    command("INCR"),
    command("INCRBY", integer),
    command("DECRBY", integer)
  ],
  hashes: [
    command("HSET", some(fc.tuple(member, text))),
    command("HSET", member, text, optional(member)),
    command("HGET", member),
    command("HMGET", some(member)),
    command("HGETALL"),
    command("HKEYS"),
    command("HVALS"),
    command("HDEL", some(member)),
    command("HLEN"),
    command("HINCRBY", member, integer)
  ],
  lists: [
    command("RPUSH", some(text)),
    command("LPUSH", some(text)),
    command("LSET", integer, text),
    command("LRANGE", integer, integer),
    command("LTRIM", integer, integer),
    command("LLEN")
  ],
  sets: [command("SADD", some(member)), command("SREM", some(member)), command("SMEMBERS"), command("SCARD")],
  "sorted sets": [
    command("ZADD", optional(fc.constantFrom("NX", "XX", ["NX", "XX"])), some(fc.tuple(score, member))),
    command("ZADD", score, member, optional(score)),
    command("ZREM", some(member)),
    command("ZSCORE", member),
    command("ZCARD"),
    ...["ZRANGEBYSCORE", "ZREVRANGEBYSCORE"].map((name) =>
      command(
        name,
        bound,
        bound,
        optional(fc.constant("WITHSCORES"), fc.constant("BAD")),
        optional(fc.tuple(fc.constant("LIMIT"), small, small), fc.constantFrom(["LIMIT", 1], ["LIMIT", "x", 1]))
      )
    ),
    command("ZREMRANGEBYSCORE", bound, bound)
  ],
  streams: [
    command(
      "XADD",
      optional(words(fc.constant("MAXLEN"), optional(fc.constant("=")), integer)),
      id,
      some(fc.tuple(member, text)),
      optional(member)
    ),
    command("XADD", id, some(fc.tuple(member, text))),
    command("XRANGE", edge, edge, optional(fc.tuple(fc.constantFrom("COUNT", "count", "BAD"), small))),
    command("XREVRANGE", edge, edge, optional(fc.tuple(fc.constant("COUNT"), small))),
    command("XDEL", some(id)),
    command("XLEN"),
    command("XTRIM", fc.constantFrom("MAXLEN", "BAD"), optional(fc.constant("=")), integer),
    command("XTRIM", fc.constantFrom("MINID", "minid"), optional(fc.constant("=")), id)
  ]
}

export const sequence = (family: ReadonlyArray<fc.Arbitrary<RandomCommand>>) =>
  fc.array(fc.oneof(...family, { weight: 1, arbitrary: fc.oneof(...generic) }), { minLength: 1, maxLength: 25 })

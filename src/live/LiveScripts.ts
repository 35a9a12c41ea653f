import type { Reply, Script } from "../services/Redis.ts"

/**
 * A topic has two keys of one hash slot: the number of its latest batch, which exists while somebody follows the topic,
 * and the latest batches. Batches are numbered without a gap, so that a reader sees whether it has missed one. The
 * numbers of a topic that nobody followed for some time begin again, at a higher number.
 */

/** The result of a renewal. `began`: nobody followed the topic before, so there are no earlier batches. */
export interface Renewal {
  readonly began: boolean
  readonly number: number
}

/** KEYS: number and batches of each topic. ARGV: the first number of new numberings, milliseconds to live. */
export const renew: Script<ReadonlyArray<Renewal>> = {
  name: "renew-live-topics",
  lua: `
local found = {}
for i = 1, #KEYS, 2 do
  local began = redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2], 'NX')
  if began then redis.call('DEL', KEYS[i + 1]) else redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
  found[#found + 1] = began and 1 or 0
  found[#found + 1] = redis.call('GET', KEYS[i])
end
return found`,
  step: (call, keys, [first = "", ttl = ""]) =>
    pairs(keys).flatMap(([number, batches]) => {
      const began = call("SET", number, first, "PX", ttl, "NX") !== null
      if (began) call("DEL", batches)
      else call("PEXPIRE", number, ttl)
      return [began ? 1 : 0, call("GET", number)]
    }),
  decode: (reply) => pairs(items(reply)).map(([began, number]) => ({ began: began === 1, number: Number(number) }))
}

/**
 * KEYS: number and batches of each topic. ARGV: the maximum number of batches, their milliseconds to live, the batch of
 * each topic. Returns for each topic whether somebody follows it. Only then the batch is stored.
 */
export const publish: Script<ReadonlyArray<boolean>> = {
  name: "publish-live-batches",
  lua: `
local followed = {}
for i = 1, #KEYS, 2 do
  local at = (i + 1) / 2
  followed[at] = redis.call('EXISTS', KEYS[i])
  if followed[at] == 1 then
    redis.call('INCR', KEYS[i])
    redis.call('XADD', KEYS[i + 1], 'MAXLEN', '~', ARGV[1], redis.call('GET', KEYS[i]) .. '-0', 'digest', ARGV[at + 2])
    redis.call('PEXPIRE', KEYS[i + 1], ARGV[2])
  end
end
return followed`,
  step: (call, keys, [most = "", ttl = "", ...digests]) =>
    pairs(keys).map(([number, batches], at) => {
      if (call("EXISTS", number) !== 1) return 0
      call("INCR", number)
      call("XADD", batches, "MAXLEN", "~", most, `${call("GET", number)}-0`, "digest", digests[at] ?? "")
      call("PEXPIRE", batches, ttl)
      return 1
    }),
  decode: (reply) => items(reply).map((followed) => followed === 1)
}

/**
 * KEYS: lease, progress. ARGV: owner, milliseconds that the lease and the progress live. Returns `undefined` if another owner has the lease. Returns
 * the progress of the earlier owner, or an empty text, to a new owner. Returns "kept" to an owner that had it already.
 */
export const hold: Script<Lease> = {
  name: "hold-live-lease",
  lua: `
if redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then
  return {1, redis.call('GET', KEYS[2]) or ''}
end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {0, ''} end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return {2, ''}`,
  step: (call, [lease = "", progress = ""], [owner = "", ttl = "", progressTtl = ""]) => {
    if (call("SET", lease, owner, "PX", ttl, "NX") !== null) return [1, call("GET", progress) ?? ""]
    if (call("GET", lease) !== owner) return [0, ""]
    call("PEXPIRE", lease, ttl)
    call("PEXPIRE", progress, progressTtl)
    return [2, ""]
  },
  decode: (reply) => {
    const [state, progress] = items(reply)
    if (state === 1) return { _tag: "Begun", progress: progress === "" ? undefined : String(progress) }
    return { _tag: state === 2 ? "Kept" : "Elsewhere" }
  }
}

export type Lease =
  | { readonly _tag: "Begun"; readonly progress: string | undefined }
  | { readonly _tag: "Kept" | "Elsewhere" }

const items = (reply: Reply): ReadonlyArray<Reply> => (Array.isArray(reply) ? reply : [])

const pairs = <A>(values: ReadonlyArray<A>): ReadonlyArray<readonly [A, A]> =>
  values.flatMap((value, at) => {
    const next = values[at + 1]
    return at % 2 === 0 && next !== undefined ? [[value, next] as const] : []
  })

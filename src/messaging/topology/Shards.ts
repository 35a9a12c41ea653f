import { hash } from "node:crypto"

/** Returns the SHA-256 of the id as a big-endian number, modulo the count. All implementations use this formula. */
export const shardOf = (parentTaskId: string, shardCount: number): number => {
  const digest = hash("sha256", parentTaskId, "hex")
  // Reading 16 bits at a time keeps every intermediate result exact for up to `maxShards` shards.
  let remainder = 0
  for (let at = 0; at < digest.length; at += 4) {
    remainder = (remainder * 0x10000 + Number.parseInt(digest.slice(at, at + 4), 16)) % shardCount
  }
  return remainder
}

export const maxShards = 65_536

export const sortedUnique = (shards: ReadonlyArray<number>): ReadonlyArray<number> =>
  [...new Set(shards)].sort((one, other) => one - other)

export const shardsProblem = (shards: ReadonlyArray<number>, shardCount: number): string | undefined => {
  if (shards.length === 0) return "contains no shard"
  const outside = shards.filter((shard) => !Number.isInteger(shard) || shard < 0 || shard >= shardCount)
  return outside.length === 0
    ? undefined
    : `contains shard ${outside.join(", ")}: shards range from 0 to ${shardCount - 1}`
}

/** Returns the problem with groups of shards, if any. Events of a shard in two groups would be processed twice. */
export const groupsProblem = (groups: ReadonlyArray<ReadonlyArray<number>>, shardCount: number): string | undefined => {
  if (groups.length === 0) return "contains no group of shards"
  const taken = new Map<number, number>()
  for (const [index, group] of groups.entries()) {
    const refused = shardsProblem(group, shardCount)
    if (refused !== undefined) return `group ${index} ${refused}`
    for (const shard of sortedUnique(group)) {
      const other = taken.get(shard)
      if (other !== undefined)
        return `groups ${other} and ${index} both contain shard ${shard}, whose events would be processed twice`
      taken.set(shard, index)
    }
  }
  return undefined
}

import type { Redis as Ioredis } from "ioredis"

/** Deletes every key that begins with `prefix`, a page at a time. */
export const unlinkKeys = async (client: Ioredis, prefix: string): Promise<void> => {
  let cursor = "0"
  do {
    const [next, keys] = await client.scan(cursor, "MATCH", `${prefix}*`, "COUNT", 1_000)
    if (keys.length > 0) await client.unlink(...keys)
    cursor = next
  } while (cursor !== "0")
}

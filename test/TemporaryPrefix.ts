import { randomUUID } from "node:crypto"
import { Effect, Layer, Redacted } from "effect"
import { Redis as Ioredis } from "ioredis"
import { inject } from "vitest"
import * as RedisIoredis from "../layers/RedisIoredis.ts"

/** `null`: no Redis on this machine. */
export const server = inject("redis")

export const url = Redacted.make(server ?? "")

/** A prefix of its own, whose keys are deleted with the scope. */
export const make = Effect.acquireRelease(
  Effect.sync(() => `svc-test-${randomUUID()}:`),
  (prefix) => Effect.promise(() => deleteAll(prefix))
)

const deleteAll = async (prefix: string) => {
  const client = new Ioredis(server ?? "")
  try {
    let cursor = "0"
    do {
      const [next, keys] = await client.scan(cursor, "MATCH", `${prefix}*`, "COUNT", 1_000)
      if (keys.length > 0) await client.unlink(...keys)
      cursor = next
    } while (cursor !== "0")
  } finally {
    client.disconnect()
  }
}

export const layer = Layer.unwrap(Effect.map(make, (prefix) => RedisIoredis.layer({ url, prefix })))

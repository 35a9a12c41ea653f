import { randomUUID } from "node:crypto"
import { Effect, Layer, Redacted } from "effect"
import { Redis as Ioredis } from "ioredis"
import { inject } from "vitest"
import * as RedisIoredis from "../layers/RedisIoredis.ts"
import { unlinkKeys } from "./UnlinkKeys.ts"

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
    await unlinkKeys(client, prefix)
  } finally {
    client.disconnect()
  }
}

export const layer = Layer.unwrap(
  Effect.map(make, (prefix) => RedisIoredis.layer({ url, prefix, deadline: "10 seconds" }))
)

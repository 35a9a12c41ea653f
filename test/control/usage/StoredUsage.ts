import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { writeBatch } from "../../../src/gateway/usage/UsageWriter.ts"
import { Database } from "../../../src/services/Database.ts"
import { Redis } from "../../../src/services/Redis.ts"
import { usageQueue } from "../../../src/state/UsageQueue.ts"
import type { UsageRecord } from "../../../src/state/UsageRecord.ts"
import * as UsageRow from "../../../src/state/UsageRow.ts"

/** Writes records as the gateway does, through its queue. */
export const write = Effect.fnUntraced(function* (records: ReadonlyArray<UsageRecord>) {
  const redis = yield* Redis
  for (const record of records) yield* redis.command("RPUSH", redis.key(usageQueue), UsageRow.encode(record))
  assert.strictEqual(yield* writeBatch, records.length)
})

/** Removes all records and sums. */
export const empty = Effect.gen(function* () {
  const { sql } = yield* Database
  for (const table of ["usage_events", "usage_rollups", "usage_series"]) yield* sql`DELETE FROM ${sql(table)}`
  yield* sql`UPDATE usage_rolled SET until = 'epoch', minutes_until = now() - interval '48 hours'`
})

import { Effect } from "effect"
import { BenchFailed, eventually } from "./Child.ts"
import type { Target } from "./Exchange.ts"
import type { Gateway } from "./Gateway.ts"
import * as Load from "./Load.ts"
import type { Store } from "./Store.ts"

/** What the steady state asks of the stores, counted at the stores. */
export interface Proof {
  readonly requests: number
  /**
   * Scripts that Redis ran for anybody; without other users of the server, at most two for each request: requests of
   * one moment share them.
   */
  readonly redisScripts: number
  /** Everything that the gateway sent to PostgreSQL meanwhile. */
  readonly statements: number
  /** Transactions that wrote usage records: the statements are theirs when they are a few for each of these. */
  readonly batches: number
  readonly recorded: number
}

/** Waits until the usage queue is empty and what was in it is committed. */
export const drained = ({ redis, redisPrefix }: Store): Effect.Effect<void, BenchFailed> =>
  Effect.asVoid(
    eventually(
      Effect.promise(async () => ((await redis.llen(`${redisPrefix}usage:queue`)) === 0 ? true : undefined)),
      () => new BenchFailed({ message: "the usage queue does not become empty" })
    )
  )

export const run = Effect.fnUntraced(function* (gateway: Gateway, target: Target, requests: number) {
  const { store } = gateway
  const look = Effect.gen(function* () {
    yield* drained(store)
    return {
      statements: yield* gateway.metric("svc_database_statements_total"),
      scripts: yield* Effect.promise(() => scriptsRun(store)),
      // a transaction leaves its id on the rows that it inserted
      batches: yield* store.count("SELECT count(DISTINCT xmin::text) FROM usage_events"),
      recorded: yield* store.count("SELECT count(*) FROM usage_events")
    }
  })
  const before = yield* look
  const seen = yield* Load.loop(target, { connections: 32, forMs: 30_000, atMost: requests, kindOf: () => "instant" })
  const after = yield* look
  const proof: Proof = {
    requests: seen.answered,
    redisScripts: after.scripts - before.scripts,
    statements: after.statements - before.statements,
    batches: after.batches - before.batches,
    recorded: after.recorded - before.recorded
  }
  return proof
})

const scriptsRun = async ({ redis }: Store): Promise<number> => {
  const stats = await redis.info("commandstats")
  return [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0)
}

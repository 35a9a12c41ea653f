import { Context, type Effect, Schema } from "effect"
import { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import type { RedisError } from "../../services/Redis.ts"

/** A record without what is large. */
export type DeadLetterSummary = Omit<
  DeadLetterRecord,
  "exception_stack" | "headers" | "body" | "raw_body_b64" | "properties"
>

/** All that is given must hold. `exception_type: null`: those that no exception caused. */
export const DeadLetterFilter = Schema.Struct({
  queue_name: Schema.optionalKey(Schema.String),
  task_id: Schema.optionalKey(Schema.String),
  reason: Schema.optionalKey(Schema.String),
  exception_type: Schema.optionalKey(Schema.NullOr(Schema.String)),
  source_queue_name: Schema.optionalKey(Schema.String),
  state: Schema.optionalKey(DeadLetterRecord.fields.state)
})
export type DeadLetterFilter = typeof DeadLetterFilter.Type

/** The position is none that this index has given out. */
export class UnknownCursor extends Schema.TaggedError<UnknownCursor>()("UnknownCursor", { cursor: Schema.String }) {}

/** One dead-letter queue, by the records of it that are indexed. */
export interface IndexedQueue {
  readonly queue_name: string
  /** Of every state. */
  readonly indexed_count: number
  readonly open_count: number
  readonly unknown_count: number
  readonly replayed_count: number
  /** When the last one was dead-lettered; none where nothing is indexed. */
  readonly last_indexed_at: string | null
}

/** Records that failed alike, and wait for somebody to decide: those in the state `dead_lettered`. */
export interface DeadLetterGroup {
  readonly queue_name: string
  readonly reason: string
  readonly exception_type: string | null
  readonly count: number
  readonly oldest_dead_lettered_at: string
  readonly newest_dead_lettered_at: string
}

/** What the index holds, and what has left it. The messages themselves are still in their queues. */
export interface IndexTotals {
  readonly records: number
  /** Of everything that is kept of the records. */
  readonly bytes: number
  /** Since the index was made: let in, pushed out by newer ones, and gone by age. */
  readonly indexed_total: number
  readonly evicted_total: number
  readonly expired_total: number
}

export interface PageOptions {
  readonly limit: number
  /** The `next_cursor` of the page before. */
  readonly cursor?: string
  /** Without those that somebody replays at this moment, who may know soon what comes of it. Default: with them. */
  readonly excludeClaimed?: boolean
}

/** Who wants to replay a record. */
export interface Claim {
  readonly dlqId: string
  /** Of this attempt alone. */
  readonly token: string
  /**
   * Goes on in another process after a crash, and publishes nothing twice then: nothing at all once it is at another
   * position than that of this batch. None: a request of its own.
   */
  readonly job?: { readonly id: string; readonly position: number } | undefined
  readonly force: boolean
  /** What its state must be still. Default: any that `force` allows. */
  readonly state?: DeadLetterRecord["state"] | undefined
}

/**
 * What a claim met. `at`: when it was replayed or became unknown. `Begun`: by the same job; `isKnown`: and replayed, or the
 * job is done with its batch.
 */
export type ClaimResult =
  | { readonly _tag: "Claimed"; readonly record: DeadLetterRecord }
  | { readonly _tag: "Absent" }
  /** Epoch milliseconds. */
  | { readonly _tag: "InProgress"; readonly until: number }
  | { readonly _tag: "Begun"; readonly isAccountedFor: boolean }
  | { readonly _tag: "Replayed"; readonly at: string }
  | { readonly _tag: "Unknown"; readonly at: string; readonly by: string }
  | { readonly _tag: "Changed"; readonly state: string }

/**
 * - `released`: nothing was published. `reverted`: the publish is known to have failed. Both leave the record as it was.
 * - `replayed`: confirmed. `unknown`: nobody knows.
 */
export type ReplaySettlement =
  | { readonly _tag: "released" | "reverted" | "unknown" }
  | { readonly _tag: "replayed"; readonly at: string; readonly queue: string }

/** The index of dead letters; also the `DeadLetterSink` of consumers. */
export class DeadLetterStore extends Context.Service<
  DeadLetterStore,
  {
    /** Answers whether it is new: the same record twice is one. */
    readonly record: (record: DeadLetterRecord) => Effect.Effect<boolean, RedisError>

    readonly get: (dlqId: string) => Effect.Effect<DeadLetterRecord | undefined, RedisError>

    /**
     * Newest first; what is indexed meanwhile stands on no later page. A page may hold fewer records than `limit` where
     * filters match rarely: the end is where `next_cursor` is `null`.
     */
    readonly list: (
      filter: DeadLetterFilter,
      page: PageOptions
    ) => Effect.Effect<
      { readonly items: ReadonlyArray<DeadLetterSummary>; readonly next_cursor: string | null },
      RedisError | UnknownCursor
    >

    /** By name. */
    readonly queues: Effect.Effect<ReadonlyArray<IndexedQueue>, RedisError>

    /** Those that grew last come first. */
    readonly groups: (
      page: PageOptions
    ) => Effect.Effect<
      { readonly items: ReadonlyArray<DeadLetterGroup>; readonly next_cursor: string | null },
      RedisError | UnknownCursor
    >

    readonly totals: Effect.Effect<IndexTotals, RedisError>

    /** The first of three steps: keeps others from the record until the lease ends. Nothing is published yet. */
    readonly claim: (claim: Claim) => Effect.Effect<ClaimResult, RedisError>

    /**
     * The second: from now on the record is `replay_unknown`, until `settle` says better. `false`: the claim is lost, and
     * nothing may be published.
     */
    readonly begin: (claim: Claim) => Effect.Effect<boolean, RedisError>

    /** The third. Answers how often the record was replayed; none where it has left the index. Twice is once. */
    readonly settle: (claim: Claim, settlement: ReplaySettlement) => Effect.Effect<number | undefined, RedisError>
  }
>()("svc/DeadLetterStore") {}

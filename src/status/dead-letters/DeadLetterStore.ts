import { Context, type Effect, Schema } from "effect"
import { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import type { RedisError } from "../../services/Redis.ts"

/** A record without its large fields. */
export type DeadLetterSummary = Omit<
  DeadLetterRecord,
  "exception_stack" | "headers" | "body" | "raw_body_b64" | "properties"
>

/** Conditions on a dead letter, all of which must hold. `exception_type: null` selects records without an exception. */
export const DeadLetterFilter = Schema.Struct({
  queue_name: Schema.optionalKey(Schema.String),
  task_id: Schema.optionalKey(Schema.String),
  reason: Schema.optionalKey(Schema.String),
  exception_type: Schema.optionalKey(Schema.NullOr(Schema.String)),
  source_queue_name: Schema.optionalKey(Schema.String),
  state: Schema.optionalKey(DeadLetterRecord.fields.state)
})
export type DeadLetterFilter = typeof DeadLetterFilter.Type

/** The cursor was not issued by this index. */
export class UnknownCursor extends Schema.TaggedError<UnknownCursor>()("UnknownCursor", { cursor: Schema.String }) {}

/** A dead-letter queue with the counts of its indexed records. */
export interface IndexedQueue {
  readonly queue_name: string
  /** Records in any state. */
  readonly indexed_count: number
  readonly open_count: number
  readonly unknown_count: number
  readonly replayed_count: number
  /** When the newest record was dead-lettered; `null` if there is none. */
  readonly last_indexed_at: string | null
}

/** Open records (state `dead_lettered`) with the same queue, reason and exception type. */
export interface DeadLetterGroup {
  readonly queue_name: string
  readonly reason: string
  readonly exception_type: string | null
  readonly count: number
  readonly oldest_dead_lettered_at: string
  readonly newest_dead_lettered_at: string
}

/** The size of the index, and how many records entered and left it. The messages themselves remain in their queues. */
export interface IndexTotals {
  readonly records: number
  /** Total size of the stored records. */
  readonly bytes: number
  /** Since the index was created: records indexed, evicted by newer ones, and expired. */
  readonly indexed_total: number
  readonly evicted_total: number
  readonly expired_total: number
}

export interface PageOptions {
  readonly limit: number
  /** The `next_cursor` of the previous page. */
  readonly cursor?: string
  /** Excludes records with a replay in progress, whose outcome may be known soon. Default: false. */
  readonly excludeClaimed?: boolean
}

/** A request to replay a record. */
export interface Claim {
  readonly dlqId: string
  /** Identifies this attempt. */
  readonly token: string
  /**
   * The replay job, which may continue in another process after a crash and then must not publish anything twice. A
   * claim for another position than the job's current one publishes nothing. Absent for a single request.
   */
  readonly job?: { readonly id: string; readonly position: number } | undefined
  readonly force: boolean
  /** The state that the record must still be in. Default: any state that `force` allows. */
  readonly state?: DeadLetterRecord["state"] | undefined
}

/**
 * The result of a claim. `at`: when the record was replayed or became unknown. `Begun`: the same job has claimed the
 * record before; `isAccountedFor`: it was replayed, or the job has completed the batch.
 */
export type ClaimResult =
  | { readonly _tag: "Claimed"; readonly record: DeadLetterRecord }
  | { readonly _tag: "Absent" }
  /** The end of the other claim's lease, in epoch milliseconds. */
  | { readonly _tag: "InProgress"; readonly until: number }
  | { readonly _tag: "Begun"; readonly isAccountedFor: boolean }
  | { readonly _tag: "Replayed"; readonly at: string }
  | { readonly _tag: "Unknown"; readonly at: string; readonly by: string }
  | { readonly _tag: "Changed"; readonly state: string }

/**
 * - `released`: nothing was published. `reverted`: the publish is known to have failed. Both leave the record as it
 *   was.
 * - `replayed`: the broker confirmed the publish. `unknown`: the outcome is unknown.
 */
export type ReplaySettlement =
  | { readonly _tag: "released" | "reverted" | "unknown" }
  | { readonly _tag: "replayed"; readonly at: string; readonly queue: string }

/** The index of dead letters. It also serves as the `DeadLetterSink` of consumers. */
export class DeadLetterStore extends Context.Service<
  DeadLetterStore,
  {
    /** Indexes a record. Idempotent: returns false if the record was indexed before. */
    readonly record: (record: DeadLetterRecord) => Effect.Effect<boolean, RedisError>

    readonly get: (dlqId: string) => Effect.Effect<DeadLetterRecord | undefined, RedisError>

    /**
     * Lists records, newest first. Records indexed after the first page do not appear on later pages. A page may
     * contain fewer records than `limit` if the filter is selective; the list ends when `next_cursor` is `null`.
     */
    readonly list: (
      filter: DeadLetterFilter,
      page: PageOptions
    ) => Effect.Effect<
      { readonly items: ReadonlyArray<DeadLetterSummary>; readonly next_cursor: string | null },
      RedisError | UnknownCursor
    >

    /** The indexed queues, by name. */
    readonly queues: Effect.Effect<ReadonlyArray<IndexedQueue>, RedisError>

    /** The groups of open records. Groups with the newest records come first. */
    readonly groups: (
      page: PageOptions
    ) => Effect.Effect<
      { readonly items: ReadonlyArray<DeadLetterGroup>; readonly next_cursor: string | null },
      RedisError | UnknownCursor
    >

    readonly totals: Effect.Effect<IndexTotals, RedisError>

    /** First step of a replay: reserves the record until the lease ends. Nothing is published yet. */
    readonly claim: (claim: Claim) => Effect.Effect<ClaimResult, RedisError>

    /**
     * Second step: marks the record `replay_unknown` until `settle` records the outcome. Returns false if the claim was
     * lost; then nothing may be published.
     */
    readonly begin: (claim: Claim) => Effect.Effect<boolean, RedisError>

    /**
     * Third step: records the outcome. Returns how often the record was replayed, or `undefined` if it has left the
     * index. Idempotent.
     */
    readonly settle: (claim: Claim, settlement: ReplaySettlement) => Effect.Effect<number | undefined, RedisError>
  }
>()("svc/DeadLetterStore") {}

import { Context, type Effect, Schema } from "effect"
import { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import type { RedisError } from "../../services/Redis.ts"

/** A record without its large fields. Lists contain records in this form. */
export type DeadLetterSummary = Omit<
  DeadLetterRecord,
  "exception_stack" | "headers" | "body" | "raw_body_b64" | "properties"
>

/** A dead letter must meet all of these conditions. `exception_type: null` selects records without an exception. */
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
  /** The number of records in any state. */
  readonly indexed_count: number
  readonly open_count: number
  readonly unknown_count: number
  readonly replayed_count: number
  /** The time at which the newest record was dead-lettered. `null` if there is none. */
  readonly last_indexed_at: string | null
}

/** The records that were not replayed (`dead_lettered`) and have the same queue, reason and exception type. */
export interface DeadLetterGroup {
  readonly queue_name: string
  readonly reason: string
  readonly exception_type: string | null
  readonly count: number
  readonly oldest_dead_lettered_at: string
  readonly newest_dead_lettered_at: string
}

/** The size of the index and the number of added and deleted records. Messages stay in their queues. */
export interface IndexTotals {
  readonly records: number
  /** The total size of the stored records. */
  readonly bytes: number
  /** These three counts start when the index is created. A record is evicted to make room for newer records. */
  readonly indexed_total: number
  readonly evicted_total: number
  readonly expired_total: number
}

export interface PageOptions {
  readonly limit: number
  /** The `next_cursor` of the previous page, to continue the list. */
  readonly cursor?: string
  /** Leaves out records with a replay in progress, because their state may change soon. Default: false. */
  readonly excludeClaimed?: boolean
}

/** A request for the exclusive right to replay a record. */
export interface Claim {
  readonly dlqId: string
  /** A random text that identifies this attempt. */
  readonly token: string
  /**
   * The replay job and the position of its current batch. Missing for a single request. A claim for any other position
   * is refused. So a process that continues a job after a crash does not publish a record twice.
   */
  readonly job?: { readonly id: string; readonly position: number } | undefined
  readonly force: boolean
  /** The state that the record must have. Default: any state that `force` allows. */
  readonly state?: DeadLetterRecord["state"] | undefined
}

/**
 * The result of a claim. `at` is the time at which the record was replayed, or at which its state became unknown.
 * `Begun`: the same job has claimed the record before. `isAccountedFor` means that the outcome of that claim is known.
 */
export type ClaimResult =
  | { readonly _tag: "Claimed"; readonly record: DeadLetterRecord }
  | { readonly _tag: "Absent" }
  /** `until` is the time at which the claim of another replay expires, in milliseconds since 1970. */
  | { readonly _tag: "InProgress"; readonly until: number }
  | { readonly _tag: "Begun"; readonly isAccountedFor: boolean }
  | { readonly _tag: "Replayed"; readonly at: string }
  | { readonly _tag: "Unknown"; readonly at: string; readonly by: string }
  | { readonly _tag: "Changed"; readonly state: string }

/**
 * The outcome of a replay.
 * - `released`, `reverted`: nothing was published. The record keeps its earlier state.
 * - `replayed`: the broker has confirmed the message. `unknown`: the outcome is unknown.
 */
export type ReplaySettlement =
  | { readonly _tag: "released" | "reverted" | "unknown" }
  | { readonly _tag: "replayed"; readonly at: string; readonly queue: string }

/** The index of dead letters. Consumers can use it as their `DeadLetterSink`. */
export class DeadLetterStore extends Context.Service<
  DeadLetterStore,
  {
    /** Indexes a record. Returns false, and changes nothing, if it was indexed before. */
    readonly record: (record: DeadLetterRecord) => Effect.Effect<boolean, RedisError>

    readonly get: (dlqId: string) => Effect.Effect<DeadLetterRecord | undefined, RedisError>

    /**
     * Lists records, newest first. Records that are indexed after the first page do not appear on later pages. A page
     * may have fewer than `limit` records. Only a `next_cursor` of `null` marks the end.
     */
    readonly list: (
      filter: DeadLetterFilter,
      page: PageOptions
    ) => Effect.Effect<
      { readonly items: ReadonlyArray<DeadLetterSummary>; readonly next_cursor: string | null },
      RedisError | UnknownCursor
    >

    /** The dead-letter queues that have indexed records, sorted by name. */
    readonly queues: Effect.Effect<ReadonlyArray<IndexedQueue>, RedisError>

    /** Lists the groups of records that were not replayed. Groups with the newest records come first. */
    readonly groups: (
      page: PageOptions
    ) => Effect.Effect<
      { readonly items: ReadonlyArray<DeadLetterGroup>; readonly next_cursor: string | null },
      RedisError | UnknownCursor
    >

    readonly totals: Effect.Effect<IndexTotals, RedisError>

    /** The first step of a replay: reserves the record for a limited time. Nothing is published yet. */
    readonly claim: (claim: Claim) => Effect.Effect<ClaimResult, RedisError>

    /** The second step of a replay: sets the state to `replay_unknown`. After false, do not publish the message. */
    readonly begin: (claim: Claim) => Effect.Effect<boolean, RedisError>

    /** The last step of a replay: records its outcome. Returns the number of replays of the record. Idempotent. */
    readonly settle: (claim: Claim, settlement: ReplaySettlement) => Effect.Effect<number | undefined, RedisError>
  }
>()("svc/DeadLetterStore") {}

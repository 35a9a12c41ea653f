import { Context, type Effect, Schema } from "effect"
import { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import type { RedisError } from "../../services/Redis.ts"
import type { Followed } from "./OutcomeScripts.ts"

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
  /** The number of records that were edited. */
  readonly replaced_count: number
  /** Archived records are in no other count. */
  readonly archived_count: number
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
  /** The times of the first and the last record, also of those that have been replayed or deleted since. */
  readonly first_seen_at: string
  readonly last_seen_at: string
  /** The release of the program whose worker failed first, and last. `null` if it is not known. */
  readonly first_version: string | null
  readonly last_version: string | null
  /** The exception message of the newest record, at most 300 characters of it. `null` if it was not stored. */
  readonly exception_message: string | null
  /** The first line of the stack of the newest record, which names where the exception was thrown. `null` if its stack was not stored. */
  readonly stack_line: string | null
  /** The number of records by the hour in which they were dead-lettered, oldest first. The last hour is the current one. */
  readonly trend: {
    readonly from: string
    readonly bucket_seconds: number
    readonly counts: ReadonlyArray<number>
  }
  /** The latest replays of records of this group, newest first, and what is known of their outcomes. */
  readonly replays: ReadonlyArray<GroupReplay>
}

export interface GroupReplay {
  /** The replay job. `null` for all replays of single records. */
  readonly replay_id: string | null
  readonly last_replayed_at: string
  readonly replayed: number
  readonly handled: number
  readonly failed_again: number
}

/** The size of the index and the number of added and deleted records. Messages stay in their queues. */
export interface IndexTotals {
  readonly records: number
  readonly archived: number
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
  readonly job?: { readonly id: string; readonly position: number; readonly step?: number | undefined } | undefined
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
  | { readonly _tag: "Replaced"; readonly by: string }
  | { readonly _tag: "Archived"; readonly at: string }

/** Why a record was not edited or archived, or not taken out of the archive. */
export type RepairRefused =
  | { readonly _tag: "Absent" }
  | { readonly _tag: "InProgress"; readonly until: number }
  | { readonly _tag: "Changed"; readonly state: string }
  | { readonly _tag: "Replaced"; readonly by: string }
  | { readonly _tag: "Archived"; readonly at: string }

export type RepairResult = { readonly _tag: "Done" } | RepairRefused

/** The result of a request that archives many records, or takes them out of the archive. */
export interface RepairedMany {
  readonly changed: number
  readonly ids: ReadonlyArray<string>
  readonly refused: ReadonlyArray<{ readonly dlq_id: string; readonly detail: string }>
  /** Why it has stopped before the end, or `null`. */
  readonly problem: string | null
}

/**
 * The outcome of a replay.
 * - `released`, `reverted`: nothing was published. The record keeps its earlier state.
 * - `replayed`: the broker has confirmed the message. `unknown`: the outcome is unknown.
 */
export type ReplaySettlement =
  | { readonly _tag: "released" | "reverted" | "unknown" }
  | { readonly _tag: "replayed"; readonly at: string; readonly queue: string }

/** `kind`: the exception, or else the reason. `as`: the next dead letter, if it has a record. */
export type ProvenOutcome =
  | { readonly _tag: "handled" }
  | { readonly _tag: "failed_again"; readonly kind: string; readonly as: string | null }

export interface ArchivedCopies {
  /** Returns a queue with such messages, if any. No other caller gets the queue within that time. */
  readonly take: (forMs: number) => Effect.Effect<string | undefined, RedisError>
  /** The archived records whose messages may be in the queue: at most 10,000. */
  readonly of: (queue: string) => Effect.Effect<ReadonlyArray<string>, RedisError>
  /**
   * A message that is `missed` three times is taken for removed. The messages that are left are looked for again after
   * `retryInMs`. The queue is not taken again for `restMs`.
   */
  readonly settle: (
    queue: string,
    found: {
      readonly removed: ReadonlyArray<string>
      readonly missed: ReadonlyArray<string>
      readonly retryInMs: number
      readonly restMs: number
    }
  ) => Effect.Effect<void, RedisError>
}

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

    /** Indexes an edited record in place of a record that was not replayed. The edited record is not replayed yet. */
    readonly replace: (dlqId: string, edited: DeadLetterRecord) => Effect.Effect<RepairResult, RedisError>

    /** Takes a record out of all lists. After 30 days, `sweepArchive` deletes it. */
    readonly archive: (
      dlqId: string,
      why: { readonly reason: string; readonly by: string | null }
    ) => Effect.Effect<RepairResult, RedisError>

    /** Gives a record the state back that it had before it was archived. */
    readonly unarchive: (dlqId: string) => Effect.Effect<RepairResult, RedisError>

    /** Deletes at most 100 archived records whose time has come. Returns true if there may be more. */
    readonly sweepArchive: Effect.Effect<boolean, RedisError>

    /** The messages of archived records, which are to be removed from their dead-letter queues. */
    readonly archivedCopies: ArchivedCopies

    /** Returns replayed records whose outcome is not known and is to be looked at now, or the one of that id. */
    readonly follow: (
      which: { readonly limit: number } | { readonly id: string }
    ) => Effect.Effect<ReadonlyArray<Followed>, RedisError>

    /** Records the outcome of a replay. Returns false if it was known before, or if it is not the latest replay. */
    readonly noteOutcome: (followed: Followed, outcome: ProvenOutcome) => Effect.Effect<boolean, RedisError>
  }
>()("svc/DeadLetterStore") {}

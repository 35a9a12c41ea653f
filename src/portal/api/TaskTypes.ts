/**
 * The bodies of the API of tasks (`/admin-ui/tasks/*`), which has no definition as the control API has. Their types are
 * made of those of the server, so that a name that changes there no longer compiles here.
 */
import type { ExecutionGraph } from "../../graph/ExecutionGraph.ts"
import type { ExecutionView as ServerView } from "../../graph/ExecutionView.ts"
import type { Explanation } from "../../graph/Explain.ts"
import type { CancelRequest, WorkerReport } from "../../messaging/control/ControlRecords.ts"
import type { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import type { CancellationJob, CancellationProblem } from "../../status/cancellations/CancellationJob.ts"
import type {
  DeadLetterGroup,
  DeadLetterSummary,
  IndexedQueue,
  RepairedMany
} from "../../status/dead-letters/DeadLetterStore.ts"
import type * as Diagnosis from "../../status/dead-letters/Diagnosis.ts"
import type { ReplaySelection, Selection } from "../../status/dead-letters/Selection.ts"
import type { HubState } from "../../status/http/QueueRoutes.ts"
import type { PayloadFit } from "../../status/payload/PayloadFit.ts"
import type { BrokerState, QueueView } from "../../status/queues/QueueBoard.ts"
import type { TopologyView } from "../../status/queues/TopologyMap.ts"
import type { Problem, ReplayJob } from "../../status/replay/ReplayJob.ts"
import type { ReplayPlan, ReplayStep } from "../../status/replay/ReplayPlan.ts"
import type { IndexedTask } from "../../status/tasks/IndexedTask.ts"
import type { StatusCount } from "../../status/tasks/TaskIndex.ts"

export type {
  BrokerState,
  CancellationJob,
  CancelRequest,
  DeadLetterGroup,
  DeadLetterSummary,
  ExecutionGraph,
  Explanation,
  HubState,
  PayloadFit,
  Problem,
  QueueView,
  RepairedMany,
  ReplayJob,
  ReplayPlan,
  ReplaySelection,
  ReplayStep,
  StatusCount,
  TopologyView,
  WorkerReport
}

export type GraphNode = ExecutionGraph["nodes"][number]
export type GraphEdge = ExecutionGraph["edges"][number]
export type Verdict = Explanation["verdict"]
export type SentencePart = Explanation["sentence_parts"][number]
export type QueueState = QueueView["state"]
/** Letters by their ids, or all that match when the request arrives. */
export type LetterSelection = Selection
export type LetterState = DeadLetterRecord["state"]

export interface Queues {
  readonly queues: ReadonlyArray<QueueView>
  readonly broker: BrokerState
  /** Processes of older versions do not tell it. */
  readonly hub?: HubState
}

export interface Workers {
  readonly workers: ReadonlyArray<WorkerReport>
}

export type Task = Omit<IndexedTask, "first_micros" | "last_micros"> & {
  readonly first_at: string
  readonly last_at: string
  readonly duration_ms: number
}

/** How far a list or a count looked, in a sentence for people too. */
export interface Looked {
  readonly complete: boolean
  readonly back_to: string | null
  readonly sentence: string
}

export interface TaskIndexState {
  readonly store: "postgresql" | "redis"
  readonly tasks_at_most: number | null
  readonly days: number
  readonly caught_up: boolean
  readonly backfilled: boolean
  readonly failure: string | null
}

export interface TaskPage {
  readonly tasks: ReadonlyArray<Task>
  readonly next_cursor: string | null
  readonly looked: Looked
  readonly index: TaskIndexState
}

export interface TaskCounts {
  readonly counts: ReadonlyArray<StatusCount>
  readonly exact_up_to: number
  readonly looked: Looked
}

/** The answer to a request to cancel. `cancelled` comes only from the worker itself. */
export type Cancellation = Omit<CancelRequest, "state"> & {
  readonly state: "cancelled" | "interrupting" | "not_held"
  readonly detail: string
}

export interface CancellationJobDetail extends CancellationJob {
  readonly problems: ReadonlyArray<CancellationProblem>
}

export interface CancellationPage {
  readonly cancellations: ReadonlyArray<CancellationJob>
  /** So many tasks one cancellation takes from a search, and so many by their ids. */
  readonly tasks_at_most: number
  readonly task_ids_at_most: number
  readonly next_cursor: string | null
}

export type ExecutionView = ServerView

/** A status as its publisher sent it. */
export interface StatusEvent {
  readonly task_id: string
  readonly status: string
  readonly timestamp: string
  readonly event_id: string
  readonly message?: string | null
  readonly task_type?: string | null
  readonly service?: string | null
  readonly meta: Readonly<Record<string, unknown>>
  readonly result?: unknown
}

export interface History {
  readonly count: number
  readonly events: ReadonlyArray<StatusEvent>
  readonly truncated?: boolean
  readonly next_offset?: number
  readonly oldest_offset?: number
}

export interface LetterPage {
  readonly items: ReadonlyArray<DeadLetterSummary>
  readonly next_cursor: string | null
}

export interface GroupPage {
  readonly groups: ReadonlyArray<DeadLetterGroup>
  readonly next_cursor: string | null
}

export type Letter = Omit<DeadLetterRecord, "properties" | "raw_body_b64"> & {
  readonly latest_status: StatusEvent | null
  /** The newest first. */
  readonly status_history: ReadonlyArray<StatusEvent>
  /** What became of the edited message. Only where the record was replaced; `null` if the new record is gone. */
  readonly replacement?:
    | (Pick<DeadLetterRecord, "dlq_id" | "state" | "replayed_at" | "replay_outcome" | "replaced_by"> & object)
    | null
  readonly payload_fit: PayloadFit
  readonly diagnosis: ReturnType<typeof Diagnosis.of>
}

/** An edit that would be accepted, also where its payload does not fit. */
export interface CheckedEdit extends PayloadFit {
  readonly target_queue_name: string
}

export interface ReplayJobDetail extends ReplayJob {
  readonly problems: ReadonlyArray<Problem>
}

/** The number of letters that a replay would take now. */
export interface CheckedReplay {
  readonly total: number
  /** More match than one replay takes. */
  readonly truncated: boolean
}

export interface ReplayPage {
  readonly replays: ReadonlyArray<ReplayJob>
  /** What a plan has where a request leaves it out. */
  readonly plan_defaults: ReplayPlan
  readonly next_cursor: string | null
}

export interface Replayed {
  readonly dlq_id: string
  readonly state: LetterState
  readonly target_queue_name: string | null
  readonly replayed_at: string | null
}

export interface Edited extends Replayed {
  readonly edited_from: string
  /** Why the new record was stored and not replayed. */
  readonly problem: string | null
}

export type DeadLetterQueue = IndexedQueue & {
  readonly message_count: number | null
  readonly verdict: "agrees" | "not_indexed" | "taken_out" | "no_queue" | "no_answer"
  /** What the verdict means, and what to do. */
  readonly explanation: string
}

export interface DeadLetterQueues {
  readonly queues: ReadonlyArray<DeadLetterQueue>
}

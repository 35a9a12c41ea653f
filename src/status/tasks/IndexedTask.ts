import { Schema } from "effect"
import type { JsonObject } from "../../messaging/envelope/Envelope.ts"
import { isAggregationStatus, type PublishedStatus, parentTaskId } from "../../messaging/envelope/StatusEvent.ts"
import * as Timestamp from "../../messaging/envelope/Timestamp.ts"
import type { DeliveryFacts } from "../../messaging/observe/CurrentDelivery.ts"

/** A task in the index. Times are microseconds since 1970. */
export const IndexedTask = Schema.Struct({
  task_id: Schema.String,
  task_type: Schema.NullOr(Schema.String),
  /** The latest status. */
  status: Schema.String,
  first_micros: Schema.Number,
  last_micros: Schema.Number,
  attempt: Schema.NullOr(Schema.Number),
  queue: Schema.NullOr(Schema.String),
  worker: Schema.NullOr(Schema.String),
  parent_id: Schema.NullOr(Schema.String),
  /** The exception of the latest attempt, unless the task has ended without one. */
  error_class: Schema.NullOr(Schema.String),
  /** The beginning of the latest status's message. */
  message: Schema.NullOr(Schema.String),
  attributes: Schema.Record(Schema.String, Schema.String)
})
export interface IndexedTask extends Schema.Schema.Type<typeof IndexedTask> {}

/** The change that one status makes. `isProgress`: it is a status of this task, and not only an input of its parent. */
export interface TaskChange {
  readonly task: IndexedTask
  readonly isProgress: boolean
  readonly isTerminal: boolean
}

export const maxAttributes = 8
/** Three texts of this length fit into an entry of an index of PostgreSQL, which has 2,704 bytes. */
const maxText = 255
const maxMessage = 300

export interface ChangeOptions {
  /** The members of `meta` that are attributes of the task. */
  readonly attributes: ReadonlyArray<string>
  readonly isTerminal: (status: string) => boolean
}

export const noFacts: DeliveryFacts = { queue: null, worker: null, attempt: null, errorClass: null }

/** Returns `undefined` for a task whose id PostgreSQL cannot store. Envelopes bound ids to 255 bytes. */
export const changeOf = (
  event: PublishedStatus,
  facts: DeliveryFacts,
  { attributes, isTerminal }: ChangeOptions
): TaskChange | undefined => {
  if (event.task_id.includes("\0")) return undefined
  const micros = Timestamp.toMicros(event.timestamp)
  const parent = parentTaskId(event)
  const terminal = isTerminal(event.status)
  return {
    isProgress: terminal || !isAggregationStatus(event),
    isTerminal: terminal,
    task: {
      task_id: event.task_id,
      task_type: textOf(event.task_type),
      status: textOf(event.status) ?? "",
      first_micros: micros,
      last_micros: micros,
      attempt: facts.attempt ?? attemptOf(event.meta),
      queue: textOf(facts.queue),
      worker: textOf(facts.worker),
      parent_id: parent === event.task_id ? null : textOf(parent),
      error_class: textOf(facts.errorClass),
      message: textOf(event.message, maxMessage),
      attributes: Object.fromEntries(
        attributes.flatMap((name) => {
          const value = attributeOf(event.meta[name])
          return value === null ? [] : [[name, value]]
        })
      )
    }
  }
}

/** Adds a status to what is known. The order of calls does not matter, because the time of a status decides. */
export const merge = (known: TaskChange | undefined, change: TaskChange): TaskChange => {
  if (known === undefined) return change
  const isNewer = change.task.last_micros >= known.task.last_micros
  const supersedes = change.isProgress === known.isProgress ? isNewer : change.isProgress
  const [newer, older] = supersedes ? [change, known] : [known, change]
  const [one, other] = [newer.task, older.task]
  return {
    isProgress: newer.isProgress,
    isTerminal: newer.isTerminal,
    task: {
      task_id: one.task_id,
      task_type: one.task_type ?? other.task_type,
      status: one.status,
      first_micros: Math.min(one.first_micros, other.first_micros),
      last_micros: newer.isProgress ? one.last_micros : Math.max(one.last_micros, other.last_micros),
      attempt: one.attempt ?? other.attempt,
      queue: one.queue ?? other.queue,
      worker: one.worker ?? other.worker,
      parent_id: one.parent_id ?? other.parent_id,
      error_class: one.error_class ?? (newer.isTerminal ? null : other.error_class),
      message: one.message,
      attributes: { ...other.attributes, ...one.attributes }
    }
  }
}

const attemptOf = (meta: JsonObject): number | null => {
  const attempt = meta["retry_attempt"]
  return typeof attempt === "number" && Number.isInteger(attempt) && attempt >= 0 && attempt < 2 ** 31 ? attempt : null
}

const attributeOf = (value: unknown): string | null => {
  if (JSON.isRawJSON(value)) return value.rawJSON.slice(0, maxText)
  return typeof value === "number" || typeof value === "boolean" ? String(value) : textOf(value)
}

/** PostgreSQL stores neither NUL nor half of a surrogate pair. */
const textOf = (value: unknown, most = maxText): string | null =>
  typeof value === "string" && value !== "" ? value.slice(0, most).toWellFormed().replaceAll("\0", "\u{fffd}") : null

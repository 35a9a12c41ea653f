import { isJsonObject, type JsonObject } from "../../messaging/envelope/Envelope.ts"
import * as ExactJson from "../../messaging/envelope/ExactJson.ts"
import * as Timestamp from "../../messaging/envelope/Timestamp.ts"
import type { StatusHistory } from "../../status/store/StatusStore.ts"
import type { ObservationHistory } from "../observations/ObservationStore.ts"
import { compare, type Instant, unknownInstant } from "./GraphBuilder.ts"

/** A stored observation. Its members are read one by one, because other releases may write other members. */
export interface RecordedObservation extends Instant {
  readonly type: string
  readonly text: (member: string) => string | null
  readonly count: (member: string) => number | null
  readonly flag: (member: string) => boolean
}

export interface RecordedStatus extends Instant {
  readonly status: string
  readonly message: string | null
  readonly meta: JsonObject
}

export interface ReadEntries<A> {
  /** The entries without duplicates, in chronological order. Entries with equal times are in the order of storing. */
  readonly entries: ReadonlyArray<A>
  readonly unreadable: number
}

export const instantOf = (timestamp: unknown): Instant => {
  if (typeof timestamp !== "string") return unknownInstant
  const at = Timestamp.toMicros(timestamp)
  return Number.isNaN(at) ? unknownInstant : { timestamp, at }
}

export const readObservations = (history: ObservationHistory | undefined): ReadEntries<RecordedObservation> =>
  read(
    history?.events ?? [],
    ({ json }) => json,
    (members): RecordedObservation | undefined => {
      const type = members["event_type"]
      if (typeof type !== "string") return undefined
      return {
        ...instantOf(members["timestamp"]),
        type,
        text: (member) => textOf(members[member]),
        count: (member) => countOf(members[member]),
        flag: (member) => members[member] === true
      }
    }
  )

export const readStatuses = (history: StatusHistory | undefined): ReadEntries<RecordedStatus> =>
  read(
    history?.events ?? [],
    ({ eventId }) => eventId,
    (members): RecordedStatus | undefined => {
      const { meta, status, timestamp } = members
      if (typeof status !== "string") return undefined
      return {
        ...instantOf(timestamp),
        status,
        message: textOf(members["message"]),
        meta: isJsonObject(meta) ? meta : {}
      }
    }
  )

interface StoredEntry {
  readonly sequence: number
  readonly json: string
}

const read = <S extends StoredEntry, A extends Instant>(
  stored: ReadonlyArray<S>,
  identity: (entry: S) => string,
  entryOf: (members: JsonObject) => A | undefined
): ReadEntries<A> => {
  const knownIds = new Set<string>()
  const found: Array<{ readonly entry: A; readonly sequence: number; readonly json: string }> = []
  let unreadable = 0
  for (const one of stored) {
    const { json, sequence } = one
    const id = identity(one)
    if (knownIds.has(id)) continue
    knownIds.add(id)
    const members = parsed(json)
    const entry = members && entryOf(members)
    if (entry === undefined) unreadable++
    else found.push({ entry, sequence, json })
  }
  found.sort(
    (one, other) =>
      compare(one.entry.at, other.entry.at) || one.sequence - other.sequence || compare(one.json, other.json)
  )
  return { entries: found.map(({ entry }) => entry), unreadable }
}

const parsed = (json: string): JsonObject | undefined => {
  try {
    const value = ExactJson.parse(json)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null)

const countOf = (value: unknown): number | null =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null

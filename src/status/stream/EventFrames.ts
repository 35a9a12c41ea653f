import * as SseFrames from "../../http/SseFrames.ts"
import * as EventId from "../store/EventId.ts"
import type { Reset, ResetReason } from "./ResumeCursor.ts"

export const ready = SseFrames.event("ready", "{}")

/** Formats a status as a server-sent event. `json` must not contain line breaks. */
export const status = (eventId: string, json: string): string => SseFrames.event("status", json, frameIdOf(eventId))

export const reset = ({ from, reason }: Reset): string => {
  const data = {
    reason,
    message: resetMessages[reason],
    from_event_id: from?.eventId ?? null,
    from_sequence: from?.sequence ?? null
  }
  return SseFrames.event("reset", JSON.stringify(data))
}

const resetMessages: Readonly<Record<ResetReason, string>> = {
  history_trimmed: "Events after the last received event are no longer stored. The whole stored history follows.",
  history_gone: "No event of this task is stored any more.",
  unknown_event: "The last received event is not in the history of this task. The whole stored history follows.",
  sequence_restarted: "The history of this task expired, and a new history began. The whole new history follows."
}

/** Returns the event id, or its hash if the id is too long or unsafe for the header `Last-Event-ID`. */
export const frameIdOf = (eventId: string): string =>
  eventId.length <= maxLastEventIdLength && headerSafe.test(eventId) ? eventId : `sha256:${EventId.hashOf(eventId)}`

export const maxLastEventIdLength = 512

// An id must not start or end with a space, because proxies and servers trim header values.
const headerSafe = /^(?!\s)[^\p{Cc}\p{Cs}]+(?<!\s)$/u

/** Removes the line breaks between JSON members, because a line break ends the `data` field of a frame. */
export const oneLine = (json: string): string => (/[\r\n]/.test(json) ? json.replace(/[\r\n]+/g, " ") : json)

/** Decodes the header `Last-Event-ID` as UTF-8, because browsers send UTF-8 and Node decodes headers as Latin-1. */
export const lastEventIdOf = (header: string | undefined): string | undefined => {
  if (header === undefined || header === "") return undefined
  const bytes = Buffer.from(header, "latin1")
  const text = bytes.toString("utf8")
  return Buffer.from(text, "utf8").equals(bytes) ? text : header
}

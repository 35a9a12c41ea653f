import * as EventId from "../store/EventId.ts"
import type { Reset, ResetReason } from "./ResumeCursor.ts"

/** The frames of an event stream, as the text of WHATWG's server-sent events. */

export const ready = "event: ready\ndata: {}\n\n"

export const keepalive = ": keepalive\n\n"

/**
 * The last of a stream whose server goes. `retryMs`: each client gets a wait of its own, or thousands of them would knock
 * at the next replica at once.
 */
export const shutdownNotice = (retryMs: number): string =>
  `retry: ${retryMs}\n: the server is going down; reconnect with the id of the last event\n\n`

/** `json`: on one line. */
export const status = (eventId: string, json: string): string =>
  `id: ${frameIdOf(eventId)}\nevent: status\ndata: ${json}\n\n`

/** Whatever the client has of the task is void: what is kept of it follows from its beginning. */
export const reset = ({ from, reason }: Reset): string => {
  const data = {
    reason,
    message: resetMessages[reason],
    from_event_id: from?.eventId ?? null,
    from_sequence: from?.sequence ?? null
  }
  return `event: reset\ndata: ${JSON.stringify(data)}\n\n`
}

const resetMessages: Readonly<Record<ResetReason, string>> = {
  history_trimmed: "Events behind the last one received are no longer kept. All that is kept follows.",
  history_gone: "Nothing of this task is kept any more.",
  unknown_event: "The last event received is not in the history of this task. All that is kept follows.",
  sequence_restarted: "The history of this task expired and began again. All that is kept follows."
}

/**
 * The id of an event in its frame: its own. One that would break the frame, or that is too long to come back in a header,
 * is named by its hash.
 */
export const frameIdOf = (eventId: string): string =>
  eventId.length <= maxLastEventIdLength && headerSafe.test(eventId) ? eventId : `sha256:${EventId.hashOf(eventId)}`

export const maxLastEventIdLength = 512

// a header's value is trimmed on its way
const headerSafe = /^(?!\s)[^\p{Cc}\p{Cs}]+(?<!\s)$/u

/** JSON text without the line breaks between its members, which would end the `data` of a frame. */
export const oneLine = (json: string): string => (/[\r\n]/.test(json) ? json.replace(/[\r\n]+/g, " ") : json)

/** Node reads headers as latin1, and browsers send the id back as UTF-8. */
export const lastEventIdOf = (header: string | undefined): string | undefined => {
  if (header === undefined || header === "") return undefined
  const bytes = Buffer.from(header, "latin1")
  const text = bytes.toString("utf8")
  return Buffer.from(text, "utf8").equals(bytes) ? text : header
}

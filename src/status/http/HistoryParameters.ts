import { fitsShortString } from "../../messaging/envelope/Envelope.ts"
import type { HistoryQuery, HistoryReader, Source } from "../history/History.ts"
import type { InvalidParameter } from "./ErrorBody.ts"

interface HistoryRequest extends HistoryQuery {
  readonly source: Source
}

/** Parses the query string, or returns all invalid parameters. `taskField` is the public name of the task id. */
export const read = (
  query: URLSearchParams,
  taskField: string,
  { caps, source: defaultSource, stream }: HistoryReader["Service"]
): HistoryRequest | ReadonlyArray<InvalidParameter> => {
  const mistakes: Array<InvalidParameter> = []
  const mistake = (name: string, msg: string) => void mistakes.push({ loc: ["query", name], msg })

  const source = query.get("source") ?? defaultSource
  const taskId = query.get(taskField) ?? undefined
  const offset = query.get("start_offset") ?? "first"
  const maxSeconds = number("max_seconds", /^\d{1,9}(\.\d{1,9})?$/)
  const maxScan = number("max_scan", /^-?\d{1,15}$/)
  const isOffset = /^(first|last|\d{1,15})$/.test(offset)

  if (source !== "store" && source !== "stream") mistake("source", "must be store or stream")
  if (source === "stream" && stream === undefined) {
    mistake("source", "must be store: this service does not read the broker's status stream")
  }
  if (taskId !== undefined && taskId.trim() === "") mistake(taskField, "must not be blank")
  if (taskId !== undefined && !fitsShortString(taskId)) mistake(taskField, "must have at most 255 bytes")
  if (!isOffset) mistake("start_offset", "must be first, last, or an integer of 0 or more")
  if (maxSeconds !== undefined && !(maxSeconds > 0 && maxSeconds <= caps.maxSeconds)) {
    mistake("max_seconds", `must be a number above 0, at most ${caps.maxSeconds}`)
  }
  if (maxScan !== undefined && !(maxScan >= 1 && maxScan <= caps.maxEvents)) {
    mistake("max_scan", `must be an integer from 1 to ${caps.maxEvents}`)
  }
  if (source === "store" && taskId === undefined) {
    mistake(taskField, "must be given: the status store can read only the history of one task")
  }
  if (source === "stream" && taskId === undefined && maxSeconds === undefined && maxScan === undefined) {
    mistake(taskField, `must be given, unless max_seconds or max_scan limits how much of the stream is read`)
  }
  if (mistakes.length > 0) return mistakes
  return {
    source: source === "stream" ? "stream" : "store",
    taskId,
    startOffset: offset === "first" || offset === "last" ? offset : Number(offset),
    maxSeconds,
    maxScan
  }

  /** Returns `NaN` for text that is not a number. The range checks then reject it. */
  function number(name: string, form: RegExp): number | undefined {
    const text = query.get(name)
    return text === null ? undefined : form.test(text) ? Number(text) : Number.NaN
  }
}

import { type Json, listOf, objectOf, textOf } from "./Json.ts"
import { messageOf, problemOf } from "./Messages.ts"
import { failureOf } from "./SimulatedFailures.ts"
import {
  errorResponse,
  errorTypeB,
  jsonResponse,
  type Moment,
  type SimulatedResponse,
  textResponse
} from "./SimulatedResponse.ts"

/** The oldest batches beyond this number are deleted. The results of 32 batches take up to 50 MB. */
const maxBatches = 32
const mostRequests = 256
const dayMs = 86_400_000

interface Batch {
  readonly id: string
  readonly createdAt: number
  readonly requests: ReadonlyArray<BatchEntry>
  readonly canceledAt: number | undefined
}

interface BatchEntry {
  readonly customId: string
  readonly result: { readonly type: "succeeded" | "errored" } & Json
}

/** Serves `/v1/messages/batches`. Results are computed when a batch is created. The batch ends `batchMs` later. */
export class MessageBatches {
  readonly #batchMs: number
  readonly #batches = new Map<string, Batch>()

  constructor(batchMs: number) {
    this.#batchMs = batchMs
  }

  create(body: Json, moment: Moment): SimulatedResponse {
    const requests = listOf(body["requests"]).map(objectOf)
    if (requests.length === 0) return errorResponse("B", moment, 400, "requests: Field required")
    if (requests.length > mostRequests) {
      return errorResponse("B", moment, 413, `requests: the simulator accepts at most ${mostRequests}`)
    }
    const ids = requests.map((request) => textOf(request["custom_id"]) ?? "")
    if (ids.includes("")) return errorResponse("B", moment, 400, "requests.custom_id: Field required")
    if (new Set(ids).size < ids.length) return errorResponse("B", moment, 400, "requests.custom_id: must be unique")
    const batch: Batch = {
      id: `msgbatch_${moment.serial}`,
      createdAt: moment.now,
      requests: requests.map((request, i) => ({
        customId: ids[i] ?? "",
        result: resultOf(objectOf(request["params"]), { ...moment, serial: `${moment.serial}${i}` })
      })),
      canceledAt: undefined
    }
    this.#batches.set(batch.id, batch)
    for (const oldest of this.#batches.keys()) {
      if (this.#batches.size <= maxBatches) break
      this.#batches.delete(oldest)
    }
    return jsonResponse(this.#view(batch, moment))
  }

  list(query: URLSearchParams, moment: Moment): SimulatedResponse {
    const newestFirst = [...this.#batches.values()].reverse()
    const limit = Math.min(Math.max(Number(query.get("limit") ?? 20) || 20, 1), 1_000)
    const after = newestFirst.findIndex((batch) => batch.id === query.get("after_id")) + 1
    const before = newestFirst.findIndex((batch) => batch.id === query.get("before_id"))
    const upTo = before < 0 ? newestFirst.length : before
    const from = before < 0 ? after : Math.max(after, before - limit)
    const page = newestFirst.slice(from, upTo).slice(0, limit)
    return jsonResponse({
      data: page.map((batch) => this.#view(batch, moment)),
      has_more: before < 0 ? from + page.length < newestFirst.length : from > 0,
      first_id: page.at(0)?.id ?? null,
      last_id: page.at(-1)?.id ?? null
    })
  }

  get(id: string, moment: Moment): SimulatedResponse {
    const batch = this.#batches.get(id)
    return batch === undefined ? notFound(id, moment) : jsonResponse(this.#view(batch, moment))
  }

  cancel(id: string, moment: Moment): SimulatedResponse {
    const batch = this.#batches.get(id)
    if (batch === undefined) return notFound(id, moment)
    if (this.#endedAt(batch) <= moment.now || batch.canceledAt !== undefined) {
      return jsonResponse(this.#view(batch, moment))
    }
    const canceled = { ...batch, canceledAt: moment.now }
    this.#batches.set(id, canceled)
    return jsonResponse(this.#view(canceled, moment))
  }

  results(id: string, moment: Moment): SimulatedResponse {
    const batch = this.#batches.get(id)
    if (batch === undefined) return notFound(id, moment)
    if (this.#endedAt(batch) > moment.now) {
      return errorResponse("B", moment, 400, `Batch ${id} has not ended: it has no results yet.`)
    }
    const lines = batch.requests.map((entry) => {
      const result = batch.canceledAt === undefined ? entry.result : { type: "canceled" }
      return `${JSON.stringify({ custom_id: entry.customId, result })}\n`
    })
    return textResponse("application/x-jsonl", lines.join(""))
  }

  #endedAt(batch: Batch): number {
    return (batch.canceledAt ?? batch.createdAt) + this.#batchMs
  }

  #view(batch: Batch, moment: Moment) {
    const ended = this.#endedAt(batch) <= moment.now
    const canceled = batch.canceledAt !== undefined
    const count = (type: string) => batch.requests.filter((entry) => entry.result.type === type).length
    return {
      id: batch.id,
      type: "message_batch",
      processing_status: ended ? "ended" : canceled ? "canceling" : "in_progress",
      request_counts: {
        processing: ended ? 0 : batch.requests.length,
        succeeded: ended && !canceled ? count("succeeded") : 0,
        errored: ended && !canceled ? count("errored") : 0,
        canceled: ended && canceled ? batch.requests.length : 0,
        expired: 0
      },
      created_at: iso(batch.createdAt),
      expires_at: iso(batch.createdAt + dayMs),
      ended_at: ended ? iso(this.#endedAt(batch)) : null,
      cancel_initiated_at: batch.canceledAt === undefined ? null : iso(batch.canceledAt),
      archived_at: null,
      // A relative URL, so that clients request the results through the gateway.
      results_url: ended ? `/v1/messages/batches/${batch.id}/results` : null
    }
  }
}

const resultOf = (params: Json, moment: Moment): BatchEntry["result"] => {
  const failure = failureOf(params["model"])
  const mistake = problemOf(params)
  if (failure?.kind === "status") return erroredResult(failure.status, `Simulated ${failure.status}.`)
  if (mistake !== undefined) return erroredResult(400, mistake)
  return { type: "succeeded", message: messageOf(params, moment) }
}

const erroredResult = (status: number, message: string): BatchEntry["result"] => ({
  type: "errored",
  error: { type: "error", error: { type: errorTypeB(status), message }, request_id: null }
})

const notFound = (id: string, moment: Moment): SimulatedResponse =>
  errorResponse("B", moment, 404, `No batch with id ${id}.`)

const iso = (now: number): string => new Date(now).toISOString()

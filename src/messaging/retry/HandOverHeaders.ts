import type { Fields } from "../../services/Broker.ts"
import { isJsonObject, type JsonObject } from "../envelope/Envelope.ts"
import * as RetryHeaders from "./RetryHeaders.ts"

const countHeader = "x-svc-manual-retry-count"
const sourceConsumerHeader = "x-svc-manual-retry-source-consumer"
const fromTaskTypeHeader = "x-svc-manual-retry-from-task-type"
const reasonHeader = "x-svc-manual-retry-reason"

const prefix = "x-svc-manual-retry-"

/** A manual retry hands a task over to another worker. `count` is the number of such retries so far. */
export interface HandOverHeaders {
  readonly count: number
  readonly previousTaskType: string | undefined
  readonly sourceConsumer: string | undefined
  readonly reason: string | undefined
}

export const ofHeaders = (headers: Fields): HandOverHeaders => ({
  count: RetryHeaders.count(headers[countHeader]),
  previousTaskType: text(headers[fromTaskTypeHeader]),
  sourceConsumer: text(headers[sourceConsumerHeader]),
  reason: text(headers[reasonHeader])
})

/** Reads the manual retries from `meta`, because the headers of an aggregation event do not contain them. */
export const ofMeta = (meta: JsonObject): HandOverHeaders => {
  const lineage = meta["manual_retry"]
  const known = isJsonObject(lineage) ? lineage : {}
  return {
    count: toCount(known["count"]),
    previousTaskType: text(known["previous_task_type"]),
    sourceConsumer: text(known["source_consumer"]),
    reason: text(known["reason"])
  }
}

export const none: HandOverHeaders = {
  count: 0,
  previousTaskType: undefined,
  sourceConsumer: undefined,
  reason: undefined
}

export const isEmpty = (lineage: HandOverHeaders): boolean =>
  lineage.count === 0 &&
  lineage.previousTaskType === undefined &&
  lineage.sourceConsumer === undefined &&
  lineage.reason === undefined

/** Adds the manual retries to `meta`. Members of `meta.manual_retry` that the caller has set are kept. */
export const intoMeta = (meta: JsonObject, lineage: HandOverHeaders): JsonObject => {
  if (isEmpty(lineage)) return meta
  const given = meta["manual_retry"]
  const merged = {
    count: lineage.count,
    ...(lineage.previousTaskType !== undefined && { previous_task_type: lineage.previousTaskType }),
    ...(lineage.sourceConsumer !== undefined && { source_consumer: lineage.sourceConsumer }),
    ...(lineage.reason !== undefined && { reason: lineage.reason }),
    ...(isJsonObject(given) && given)
  }
  return { ...meta, manual_retry: { ...merged, count: toCount(merged.count) } }
}

export const withoutHeaders = (headers: Fields): Fields =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(prefix)))

export const toHeaders = (lineage: HandOverHeaders): Fields => ({
  [countHeader]: lineage.count,
  ...(lineage.sourceConsumer !== undefined && { [sourceConsumerHeader]: lineage.sourceConsumer }),
  ...(lineage.previousTaskType !== undefined && { [fromTaskTypeHeader]: lineage.previousTaskType }),
  ...(lineage.reason !== undefined && { [reasonHeader]: lineage.reason })
})

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value : undefined

const toCount = (value: unknown): number => {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value
  return typeof number === "number" && Number.isFinite(number) && number > 0 ? Math.trunc(number) : 0
}

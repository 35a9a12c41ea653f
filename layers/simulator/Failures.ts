import { type Answer, type Family, type Moment, refusal } from "./Answer.ts"

/** What a model name asks the simulator to do wrong. */
export type Failure =
  | { readonly kind: "status"; readonly status: number }
  | { readonly kind: "slow" }
  | { readonly kind: "cut" }
  | { readonly kind: "stall" }

/** `simulate-429`, `provider/simulate-cut`, … */
export const failureOf = (model: unknown): Failure | undefined => {
  const what = typeof model === "string" ? /(?:^|\/)simulate-([45]\d\d|slow|cut|stall)$/.exec(model)?.[1] : undefined
  switch (what) {
    case undefined:
      return undefined
    case "slow":
    case "cut":
    case "stall":
      return { kind: what }
    default:
      return { kind: "status", status: Number(what) }
  }
}

/** `answer`, as the failure leaves it. */
export const failed = (failure: Failure, answer: Answer, family: Family, moment: Moment, slowMs: number): Answer => {
  switch (failure.kind) {
    case "status":
      return refusal(family, moment, failure.status, `Simulated ${failure.status}.`, {
        code: codes.get(failure.status)
      })
    case "slow":
      return { ...answer, delayMs: slowMs }
    case "cut":
      return { ...answer, chunks: firstHalf(answer.chunks), ending: "cut" }
    case "stall":
      return { ...answer, chunks: firstHalf(answer.chunks), ending: "stalled" }
  }
}

const codes: ReadonlyMap<number, string> = new Map([
  [401, "invalid_api_key"],
  [404, "model_not_found"],
  [429, "rate_limit_exceeded"]
])

const firstHalf = (chunks: ReadonlyArray<Uint8Array>): ReadonlyArray<Uint8Array> => {
  const only = chunks.length === 1 ? chunks[0] : undefined
  return only === undefined
    ? chunks.slice(0, Math.ceil(chunks.length / 2))
    : [only.subarray(0, Math.ceil(only.byteLength / 2))]
}

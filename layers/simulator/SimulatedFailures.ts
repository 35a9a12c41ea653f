import { errorResponse, type Family, type Moment, type SimulatedResponse } from "./SimulatedResponse.ts"

type SimulatedFailure =
  | { readonly kind: "status"; readonly status: number }
  | { readonly kind: "slow" }
  | { readonly kind: "cut" }
  | { readonly kind: "stall" }

/** Model names such as `simulate-429` or `provider/simulate-cut` select a failure. */
export const failureOf = (model: unknown): SimulatedFailure | undefined => {
  const name = typeof model === "string" ? /(?:^|\/)simulate-([45]\d\d|slow|cut|stall)$/.exec(model)?.[1] : undefined
  switch (name) {
    case undefined:
      return undefined
    case "slow":
    case "cut":
    case "stall":
      return { kind: name }
    default:
      return { kind: "status", status: Number(name) }
  }
}

export const applyFailure = (
  failure: SimulatedFailure,
  response: SimulatedResponse,
  family: Family,
  moment: Moment,
  slowMs: number
): SimulatedResponse => {
  switch (failure.kind) {
    case "status":
      return errorResponse(family, moment, failure.status, `Simulated ${failure.status}.`, {
        code: codes.get(failure.status)
      })
    case "slow":
      return { ...response, delayMs: slowMs }
    case "cut":
      return { ...response, chunks: firstHalf(response.chunks), ending: "cut" }
    case "stall":
      return { ...response, chunks: firstHalf(response.chunks), ending: "stalled" }
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

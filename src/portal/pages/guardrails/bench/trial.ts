import type { BodyOf, ResponseOf } from "../../../api/Endpoints.ts"

export type Trial = BodyOf<"POST", "/admin-ui/admin/guardrails/:name/test">
export type TrialResult = ResponseOf<"POST", "/admin-ui/admin/guardrails/:name/test">

/** What went in, beside what came out. */
export interface Tried {
  readonly request: string
  readonly answer: string
  readonly result: TrialResult
}

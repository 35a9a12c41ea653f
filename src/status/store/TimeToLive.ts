import type { ValidationIssues } from "../../messaging/topology/Parameters.ts"

/** The `ttl_seconds` of what is kept of a task: at most ten years. `null` and 0 both mean for ever, and become `null`. */
export const normalize = (seconds: number | null, findings: ValidationIssues): number | null => {
  findings.checkInteger("ttl_seconds", seconds ?? undefined, 0, maxSeconds)
  return seconds || null
}

/** One for all stores: those of one program are given one time. */
const maxSeconds = 10 * 365 * 86_400

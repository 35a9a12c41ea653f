import type { ValidationIssues } from "../../messaging/topology/Parameters.ts"

/** Validates `ttl_seconds` of a store: at most ten years. `null` and 0 both mean for ever, and become `null`. */
export const normalize = (seconds: number | null, issues: ValidationIssues): number | null => {
  issues.checkInteger("ttl_seconds", seconds ?? undefined, 0, maxSeconds)
  return seconds || null
}

const maxSeconds = 10 * 365 * 86_400

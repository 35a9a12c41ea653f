import type { ValidationIssues } from "../../messaging/topology/Parameters.ts"

/** Validates `ttl_seconds`, which is at most ten years. Returns `null` for 0, because both mean for ever. */
export const normalize = (seconds: number | null, issues: ValidationIssues): number | null => {
  issues.checkInteger("ttl_seconds", seconds ?? undefined, 0, maxSeconds)
  return seconds || null
}

const maxSeconds = 10 * 365 * 86_400

import type { LimitState } from "../state/limitStates.ts"

/** An amount to begin with: twice the limit, or twice what is used where that is more, because no less would help. */
export const suggestedAmount = ({
  limit,
  reserved,
  unit,
  used
}: Pick<LimitState, "limit" | "reserved" | "unit" | "used">): number => {
  const amount = 2 * Math.max(limit, (used ?? 0) + (reserved ?? 0))
  return unit === "usd" ? Math.ceil(amount * 1e6) / 1e6 : amount
}

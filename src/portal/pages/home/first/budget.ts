import type { PolicyField } from "../../../shared/policy/fields.ts"
import { decimalText, moneyText } from "../../../shared/words/format.ts"

/** Costs are counted in millionths of a dollar. */
const least = 0.000_001

/** Reads what somebody has written as a budget: the amount, or why it is none, and the way out. */
export const readBudget = (
  text: string,
  { field, maximum, minimum }: Pick<PolicyField, "field" | "minimum" | "maximum">
): { readonly amount: number } | { readonly problem: string } => {
  const written = text.trim()
  const amount = Number(written)
  const [low, high] = [minimum ?? 0, maximum ?? Number.MAX_SAFE_INTEGER]
  if (!/^[+-]?[\d.]+$/.test(written) || Number.isNaN(amount))
    return { problem: `${field} is a number of US dollars, such as 5 or 0.25.` }
  if (amount < low || amount > high)
    return {
      problem: `${field} is from ${decimalText(low, 6)} to ${decimalText(high, 6)} US dollars. Write an amount between them.`
    }
  if (amount > 0 && amount < least)
    return { problem: `${field} is at least ${moneyText(least)}, or 0 to refuse every request. Write one of them.` }
  return { amount }
}

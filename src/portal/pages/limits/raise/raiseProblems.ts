import type { FieldError } from "../../../api/ApiError.ts"
import { amountText } from "../../../shared/words/amountText.ts"
import type { LimitState, MeterName } from "../state/limitStates.ts"

export interface RaiseValues {
  readonly meter: MeterName
  readonly amount: number
  readonly until: Date
  readonly reason: string
}

/** Returns the mistakes of a form that cannot be a raise, so that nobody is asked to confirm it. The server decides all else. */
export const raiseProblems = (
  { amount, meter, until }: Pick<RaiseValues, "meter" | "amount" | "until">,
  { limit, unit }: Pick<LimitState, "limit" | "unit">,
  now: number
): ReadonlyArray<FieldError> => [
  ...(amount > limit
    ? []
    : [{ field: meter, message: `It must be more than ${amountText(limit, unit)}, the limit now.` }]),
  ...(until.getTime() > now ? [] : [{ field: "until", message: "It must be a time to come." }])
]

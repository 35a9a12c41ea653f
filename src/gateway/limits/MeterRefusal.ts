import { Duration } from "effect"
import { toDollars } from "../../policy/Price.ts"
import type { Meter } from "../../state/limits/Meters.ts"
import { type ErrorCode, GatewayError } from "../GatewayError.ts"

const retryAfterSeconds = (meter: Meter, now: number): number =>
  Math.max(1, Math.ceil(Duration.toSeconds(Duration.millis(meter.endsAt - now))))

const codeOf = ({ unit }: Meter): ErrorCode =>
  unit === "nanos" ? "budget_exceeded" : unit === "tokens" ? "token_rate_limit_exceeded" : "rate_limit_exceeded"

const formatAmount = (meter: Meter, units: number): string =>
  meter.unit === "nanos" ? `$${toDollars(units)}` : `${units} ${meter.unit}`

/** Returns the error for a full meter. If the request can never fit, the error has no retry time. */
export const refusal = (
  meter: Meter,
  used: number,
  wanted: number,
  now: number,
  outputTokens = Number.NaN
): GatewayError => {
  const limit = `${meter.scope.nameOf(meter.field)} (${formatAmount(meter, meter.limit)} a ${meter.window})`
  const code = codeOf(meter)
  if (wanted > meter.limit) {
    const suggestion =
      outputTokens >= 1 && Number.isFinite(outputTokens)
        ? ` Request at most ${outputTokens} output tokens in total.`
        : ""
    const message = `The request needs an estimated ${formatAmount(meter, wanted)}, which can never fit ${limit}.${suggestion}`
    return new GatewayError({ code, message })
  }
  return new GatewayError({
    code,
    message: `The request would exceed ${limit}: ${formatAmount(meter, used)} are used or reserved; the window resets at ${new Date(meter.endsAt).toISOString()}.`,
    retryAfterSeconds: retryAfterSeconds(meter, now)
  })
}

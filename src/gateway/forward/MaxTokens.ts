import { type Ceiling, outputPerOpenChoice } from "../../policy/Estimate.ts"
import type { Facts } from "../../policy/facts/Facts.ts"
import * as JsonMembers from "../../policy/facts/JsonMembers.ts"
import type { KeyPolicy } from "../../policy/KeyPolicy.ts"
import type { ModelPrice } from "../../policy/Price.ts"
import type { Target } from "../../policy/Routing.ts"
import type { Body } from "../request/RequestBody.ts"

const memberByRoute: Partial<Record<Target["routeId"], string>> = {
  "chat-completions": "max_completion_tokens",
  responses: "max_output_tokens",
  messages: "max_tokens"
}

/** `perResponse` is the output limit for each response that the request itself does not limit. */
interface MaxTokens {
  readonly perResponse: number
  readonly isSentUpstream: boolean
}

/**
 * An output limit is added to the request body if the policy has an output limit. On a managed route it is also added
 * if tokens or cost are reserved. The response then stays within the reservation.
 */
export const of = (
  { config, routeId }: Pick<Target, "config" | "routeId">,
  facts: Facts,
  price: ModelPrice | undefined,
  policy: KeyPolicy,
  limits: ReadonlyArray<Ceiling>
): MaxTokens => {
  if (facts.openChoices === 0) return notNeeded
  const isReserved =
    policy.max_cost_per_request._tag === "Limited" || limits.some(({ unit }) => unit === "tokens" || unit === "nanos")
  return {
    perResponse: outputPerOpenChoice(facts, price, policy, limits),
    isSentUpstream:
      memberByRoute[routeId] !== undefined &&
      (policy.max_output_tokens_per_request._tag === "Limited" || (isReserved && config.mode === "managed_by_gateway"))
  }
}

const notNeeded: MaxTokens = { perResponse: 0, isSentUpstream: false }

export const writeTo = (routeId: Target["routeId"], body: Body, maxTokens: MaxTokens): Body => {
  const member = memberByRoute[routeId]
  if (!maxTokens.isSentUpstream || member === undefined || body.bytes === null) return body
  const { parameters } = body
  return {
    ...body,
    ...(parameters && { parameters: { ...parameters, maxTokens: maxTokens.perResponse } }),
    bytes: Buffer.from(JsonMembers.withMember(body.bytes.toString(), member, String(maxTokens.perResponse)))
  }
}

import { type Ceiling, outputPerOpenChoice } from "../../policy/Estimate.ts"
import type { Facts } from "../../policy/facts/Facts.ts"
import * as JsonMembers from "../../policy/facts/JsonMembers.ts"
import type { KeyPolicy } from "../../policy/KeyPolicy.ts"
import type { ModelPrice } from "../../policy/Price.ts"
import type { Target } from "../../policy/Routing.ts"
import type { Body } from "../request/RequestBody.ts"

/** The member that bounds an answer, where a route has answers of any length. */
const memberByRoute: Partial<Record<Target["routeId"], string>> = {
  "chat-completions": "max_completion_tokens",
  responses: "max_output_tokens",
  messages: "max_tokens"
}

/** Output tokens for each answer that the request leaves open, and whether the upstream is told. */
export interface MaxTokens {
  readonly perResponse: number
  readonly isSentUpstream: boolean
}

/**
 * The upstream is told the bound where a policy demands one, and on managed routes where something is reserved: then
 * the answer keeps to the reservation. A request whose key has neither is left alone.
 */
export const of = (
  { config, routeId }: Pick<Target, "config" | "routeId">,
  facts: Facts,
  price: ModelPrice | undefined,
  policy: KeyPolicy,
  limits: ReadonlyArray<Ceiling>
): MaxTokens => {
  if (facts.openChoices === 0) return notNeeded
  const reserves =
    policy.max_cost_per_request._tag === "Limited" || limits.some(({ unit }) => unit === "tokens" || unit === "nanos")
  return {
    perResponse: outputPerOpenChoice(facts, price, policy, limits),
    isSentUpstream:
      memberByRoute[routeId] !== undefined &&
      (policy.max_output_tokens_per_request._tag === "Limited" || (reserves && config.mode === "managed_by_gateway"))
  }
}

const notNeeded: MaxTokens = { perResponse: 0, isSentUpstream: false }

/** The body as the upstream gets it. Bytes that the client wrote stay as they are. */
export const writeTo = (routeId: Target["routeId"], body: Body, bound: MaxTokens): Body => {
  const member = memberByRoute[routeId]
  if (!bound.isSentUpstream || member === undefined || body.bytes === null) return body
  return {
    ...body,
    bytes: Buffer.from(JsonMembers.withMember(body.bytes.toString(), member, String(bound.perResponse)))
  }
}

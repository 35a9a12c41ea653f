import type { Facts } from "./model/Facts.ts"
import * as JsonMembers from "./model/JsonMembers.ts"
import type { Limit } from "./model/Limit.ts"
import type { Body } from "./RequestBody.ts"
import type { Target } from "./Target.ts"

/** The member that bounds an answer, where a route has answers of any length. */
const members: Partial<Record<Target["routeId"], string>> = {
  "chat-completions": "max_completion_tokens",
  responses: "max_output_tokens",
  messages: "max_tokens"
}

/**
 * The body with the most output that a policy allows, where the request leaves it open: then the upstream keeps to it,
 * and nobody pays for an answer that has to be refused. Several answers (`n`) share it.
 */
export const written = (
  routeId: Target["routeId"],
  body: Body,
  { answers, maxOutputTokens }: Facts,
  most: Limit
): Body => {
  const member = members[routeId]
  if (most._tag === "Unlimited" || member === undefined || maxOutputTokens !== undefined || body.bytes === null)
    return body
  const each = Math.floor(most.max / answers)
  return { ...body, bytes: Buffer.from(JsonMembers.withMember(body.bytes.toString(), member, String(each))) }
}

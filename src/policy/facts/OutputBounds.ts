import type { BodyRoute } from "../routes/CanonicalRoute.ts"
import { isObject, type JsonObject } from "./Json.ts"

export interface OutputBounds {
  /** The sum of the output limits, in tokens, of all requests that limit their output. */
  readonly boundedOutput: number
  /** The number of choices (alternative responses) whose output the request does not limit. */
  readonly openChoices: number
  /** The largest output limit of a single request, or 0. Limit members of all protocols count. */
  readonly largestOutput: number
  /** The sum of the requests' output limits. Limit members of all protocols count. */
  readonly totalOutput: number
  /** The maximum number of choices (alternative responses) of one request. 0 on routes without text output. */
  readonly choices: number
}

/** The request as sent, and the variant in which the members of `extra_body` replace the request's own members. */
export type RequestVariants = readonly [request: JsonObject] | readonly [request: JsonObject, merged: JsonObject]

export const variantsOf = (routeId: BodyRoute, request: JsonObject): RequestVariants => {
  const extra = routeId === "service" ? undefined : request["extra_body"]
  return isObject(extra) ? [request, { ...request, ...extra }] : [request]
}

const generatingRoutes: ReadonlySet<string> = new Set(["chat-completions", "responses", "messages", "message-batches"])

const openLengthRoutes: ReadonlySet<string> = new Set([...generatingRoutes, "compat"])

export const outputMembers = ["max_completion_tokens", "max_output_tokens", "max_tokens"]

/** The members that limit the output on these routes. On other routes, any of `outputMembers` may limit it. */
const ownOutputMembers: Partial<Record<BodyRoute, ReadonlyArray<string>>> = {
  "chat-completions": ["max_completion_tokens", "max_tokens"],
  responses: ["max_output_tokens"],
  messages: ["max_tokens"],
  "message-batches": ["max_tokens"]
}

/**
 * Upstreams obey different members, so the largest output limit counts. The output counts as limited only if the member
 * that the route defines is set in every variant of the request.
 */
export const of = (routeId: BodyRoute, requestVariants: ReadonlyArray<RequestVariants>): OutputBounds => {
  const own = ownOutputMembers[routeId] ?? outputMembers
  let boundedOutput = 0
  let openChoices = 0
  let largestOutput = 0
  let totalOutput = 0
  for (const variants of requestVariants) {
    let largest = 0
    let isBounded = true
    for (const variant of variants) {
      largest = Math.max(largest, largestBound(variant, outputMembers))
      isBounded &&= largestBound(variant, own) > 0
    }
    largestOutput = Math.max(largestOutput, largest)
    totalOutput += largest
    if (isBounded) boundedOutput += largest
    else openChoices += maxChoices(variants)
  }
  return {
    boundedOutput: routeId === "service" || openLengthRoutes.has(routeId) ? boundedOutput : 0,
    openChoices: openLengthRoutes.has(routeId) ? openChoices : 0,
    largestOutput,
    totalOutput,
    choices: generatingRoutes.has(routeId)
      ? requestVariants.reduce((most, variants) => Math.max(most, maxChoices(variants)), 1)
      : 0
  }
}

const largestBound = (request: JsonObject, members: ReadonlyArray<string>): number => {
  let largest = 0
  for (const name of members) {
    const bound = request[name]
    if (typeof bound !== "number" || bound <= 0) continue
    largest = Math.max(largest, Math.min(Math.ceil(bound) * choicesOf(request), maxCount))
  }
  return largest
}

const maxChoices = (variants: RequestVariants): number =>
  variants.reduce((most, variant) => Math.max(most, choicesOf(variant)), 0)

/** An upstream generates `best_of` choices and returns `n` of them, so the larger number counts. */
const choicesOf = ({ best_of, n }: JsonObject): number =>
  Math.min(maxCount, Math.ceil(Math.max(1, typeof n === "number" ? n : 1, typeof best_of === "number" ? best_of : 1)))

const maxCount = 1e12

import type { RouteConfig } from "./CanonicalRoute.ts"

/** The stricter of the route's and the key's limit, and whose it is, for the message. */
export interface BodyLimit {
  readonly bytes: number
  readonly setBy: "the route" | "this key's policy"
}

export const strictest = (route: number, policy: number | null): BodyLimit =>
  policy !== null && policy < route
    ? { bytes: policy, setBy: "this key's policy" }
    : { bytes: route, setBy: "the route" }

/** How many bytes an answer may have in one piece, and as an event stream. */
export interface AnswerLimits {
  readonly whole: BodyLimit
  readonly stream: BodyLimit
}

export const ofAnswers = (
  { limitsStreams, maxResponseBodyBytes }: Pick<RouteConfig, "limitsStreams" | "maxResponseBodyBytes">,
  policy: number | null
): AnswerLimits => ({
  whole: strictest(maxResponseBodyBytes, policy),
  stream: strictest(limitsStreams ? maxResponseBodyBytes : Number.POSITIVE_INFINITY, policy)
})

export const tooLarge = ({ bytes, setBy }: BodyLimit): string =>
  `The request body is larger than ${bytes} bytes (max_request_body_bytes of ${setBy}). Send less, or ask an operator to raise it.`

export const answerTooLarge = ({ bytes, setBy }: BodyLimit): string =>
  `The answer is larger than ${bytes} bytes (max_response_body_bytes of ${setBy}). Ask for less, or ask an operator to raise it.`

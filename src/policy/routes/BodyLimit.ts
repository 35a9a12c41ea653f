import type { LimitSetter, RouteConfig } from "./CanonicalRoute.ts"

/** The stricter of the route's and the key's limit, and whose it is, for the message. */
export interface BodyLimit {
  readonly bytes: number
  readonly setBy: LimitSetter
}

const stricter = (bytes: number, setBy: LimitSetter, policy: number | null): BodyLimit =>
  policy !== null && policy < bytes ? { bytes: policy, setBy: "this key's policy" } : { bytes, setBy }

type RouteBodyLimits = Pick<
  RouteConfig,
  "limitsSetBy" | "limitsStreams" | "maxRequestBodyBytes" | "maxResponseBodyBytes"
>

export const ofRequests = (
  { limitsSetBy, maxRequestBodyBytes }: Pick<RouteBodyLimits, "limitsSetBy" | "maxRequestBodyBytes">,
  policy: number | null
): BodyLimit => stricter(maxRequestBodyBytes, limitsSetBy, policy)

/** How many bytes an answer may have in one piece, and as an event stream. */
export interface ResponseLimits {
  readonly whole: BodyLimit
  readonly stream: BodyLimit
}

export const ofResponses = (
  { limitsSetBy, limitsStreams, maxResponseBodyBytes }: Omit<RouteBodyLimits, "maxRequestBodyBytes">,
  policy: number | null
): ResponseLimits => ({
  whole: stricter(maxResponseBodyBytes, limitsSetBy, policy),
  stream: stricter(limitsStreams ? maxResponseBodyBytes : Number.POSITIVE_INFINITY, limitsSetBy, policy)
})

/** What raises a limit: a call of the control API, or a variable of the environment. */
interface LimitSetting {
  readonly field: string
  readonly by: string
}

const settingOf = (setBy: LimitSetter, what: "request" | "response"): LimitSetting => {
  const field = `max_${what}_body_bytes`
  switch (setBy) {
    case "the route":
      return { field, by: "PATCH /admin-ui/admin/routes/config" }
    case "the wildcard":
      return { field, by: "PATCH /admin-ui/admin/providers/upstream-passthrough" }
    case "the service":
      return { field: "max_body_bytes", by: "PATCH /admin-ui/admin/services/{name}" }
    case "the environment":
      return { field: `GATEWAY_DEFAULT_${field.toUpperCase()}`, by: "that variable" }
    case "this key's policy":
      return { field, by: "PATCH /admin-ui/admin/keys/{id}, or a policy layer above the key" }
  }
}

export const requestTooLarge = ({ bytes, setBy }: BodyLimit): string => {
  const { by, field } = settingOf(setBy, "request")
  return `The request body is larger than ${bytes} bytes (${field} of ${setBy}). Send less, or ask an operator to raise it: ${by}.`
}

export const responseTooLarge = ({ bytes, setBy }: BodyLimit): string => {
  const { by, field } = settingOf(setBy, "response")
  return `The answer is larger than ${bytes} bytes (${field} of ${setBy}). Ask for less, or ask an operator to raise it: ${by}.`
}

import type { LimitSetter, RouteConfig } from "./CanonicalRoute.ts"

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

/** The name of a limit's setting, and the API call or variable with which an operator raises it. */
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
  return `The request body is larger than ${bytes} bytes (${field} of ${setBy}). Send a smaller body, or ask an operator to raise the limit: ${by}.`
}

export const responseTooLarge = ({ bytes, setBy }: BodyLimit): string => {
  const { by, field } = settingOf(setBy, "response")
  return `The response is larger than ${bytes} bytes (${field} of ${setBy}). Request a smaller response, or ask an operator to raise the limit: ${by}.`
}

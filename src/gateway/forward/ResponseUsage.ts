import * as Headers from "../../http/Headers.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import type { ResponseReader } from "../usage/ResponseReader.ts"
import * as UsageTap from "../usage/UsageTap.ts"

/** `Blind` reads no token usage. `hideUsage` removes usage figures that only the gateway requested. */
export type UsageReading =
  | { readonly _tag: "Blind" }
  | {
      readonly _tag: "Tokens"
      readonly family: Family
      readonly hideUsage: boolean
      readonly reader?: ResponseReader | undefined
    }

/** Usage is read from whole responses and events up to these sizes. Of longer ones, only the end is read. */
const maxJsonUsageBytes = 4_194_304
const maxEventUsageBytes = 1_048_576

export const tapFor = (
  usageReading: UsageReading,
  status: number,
  headers: Headers.RawHeaders
): { readonly tap: UsageTap.UsageTap; readonly removesBytes: boolean } => {
  if (usageReading._tag === "Blind" || status >= 400 || Headers.contentEncoding(headers) !== "identity")
    return { tap: UsageTap.passthrough, removesBytes: false }
  const { family, hideUsage, reader } = usageReading
  if (Headers.isEventStream(headers)) {
    return hideUsage
      ? { tap: UsageTap.hidingUsage(family, maxEventUsageBytes, reader), removesBytes: true }
      : { tap: UsageTap.events(family, maxEventUsageBytes, reader), removesBytes: false }
  }
  return {
    tap: mayBeJson(Headers.contentType(headers))
      ? UsageTap.json(family, maxJsonUsageBytes, reader)
      : UsageTap.passthrough,
    removesBytes: false
  }
}

const mayBeJson = (type: string): boolean => type === "" || type.includes("json") || type.startsWith("text/plain")

/** A response that is refused because of its content-length is still billed, because the upstream produced it. */
export const tapOfRefused = (
  usageReading: UsageReading,
  status: number,
  headers: Headers.RawHeaders,
  length: number
): UsageTap.UsageTap => {
  const { tap } = tapFor(usageReading, status, headers)
  return tap === UsageTap.passthrough ? tap : UsageTap.unreadJson(length)
}

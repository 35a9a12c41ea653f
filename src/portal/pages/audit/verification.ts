import { ApiError } from "../../api/ApiError.ts"
import { call } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"

export type Verification = ResponseOf<"GET", "/admin-ui/admin/audit-events/verification">

/** A part is small enough that the progress is seen and the server has time for others. */
const eventsAtOnce = 2_000

/** Verifies part after part until the end or the first fault. `onPart` hears of each. */
export const verifyAll = async (
  signal: AbortSignal,
  onPart: (part: Verification) => void
): Promise<Verification | undefined> => {
  let after: number | undefined
  while (!signal.aborted) {
    const query = { limit: eventsAtOnce, ...(after !== undefined && { after }) }
    const part = await call("GET", "/admin-ui/admin/audit-events/verification", { query }, { signal })
    onPart(part)
    if (part.next_after === null) return part
    after = part.next_after
  }
  return undefined
}

export interface Anchor {
  readonly sequence: number
  readonly hash: string
}

/** Reads a head as `audit verify` prints it: `<sequence>:<hash>`. */
export const anchorOf = (text: string): Anchor | undefined => {
  const [, sequence, hash] = /^\s*(\d{1,15})\s*:\s*([0-9a-f]{64})\s*$/i.exec(text) ?? []
  return sequence === undefined || hash === undefined
    ? undefined
    : { sequence: Number(sequence), hash: hash.toLowerCase() }
}

export const anchorText = ({ hash, sequence }: Anchor): string => `${sequence}:${hash}`

/** `absent`: the log ends before the anchor. `archived`: it begins after it. */
export type Comparison = "same" | "different" | "absent" | "archived"

export const compare = async (anchor: Anchor, { archived, head }: Verification): Promise<Comparison> => {
  if (archived !== null && anchor.sequence === archived.sequence) {
    return anchor.hash === archived.hash ? "same" : "different"
  }
  if (archived !== null && anchor.sequence < archived.sequence) return "archived"
  if (head === null || anchor.sequence > head.sequence) return "absent"
  const [event] = await call("GET", "/admin-ui/admin/audit-events", { query: { sequence: String(anchor.sequence) } })
  if (event === undefined) return "absent"
  return event.hash === anchor.hash ? "same" : "different"
}

export const errorOf = (cause: unknown): ApiError =>
  cause instanceof ApiError ? cause : new ApiError(0, "failed", cause instanceof Error ? cause.message : String(cause))

import type { ResponseOf } from "../../../api/Endpoints.ts"

export const statePath = "/admin-ui/admin/limits/state"
export const endRaisePath = "/admin-ui/admin/limits/:key_id/raises/:id/end"
export type LimitPage = ResponseOf<"GET", typeof statePath>
export type LimitState = LimitPage["limits"][number]
export type MeterName = LimitState["meter"]

/** Whose limit it is: a key, or a layer that many keys share. */
export interface Owner {
  readonly id: string
  readonly scope: LimitState["scope"]
  readonly scopeId: string | null
  readonly name: string
}

export const ownerOf = ({ scope, scope_id, scope_name }: LimitState): Owner => ({
  id: `${scope}:${scope_id ?? ""}`,
  scope,
  scopeId: scope_id,
  name: scope_name
})

/**
 * The limits in force for a key alone, each once. Where only paths or models are limited, it is the lowest: what an
 * exception has to exceed.
 */
export const ownLimits = (limits: ReadonlyArray<LimitState>): ReadonlyArray<LimitState> => {
  const own = new Map<MeterName, LimitState>()
  for (const limit of limits.filter(({ scope }) => scope === "key")) {
    const known = own.get(limit.meter)
    const isStronger =
      known === undefined || (known.within !== null && (limit.within === null || limit.limit < known.limit))
    if (isStronger) own.set(limit.meter, limit)
  }
  return [...own.values()]
}

/** The id of one limit among all. */
export const limitId = ({ meter, scope, scope_id, within }: LimitState): string =>
  [scope, scope_id ?? "", within ?? "", meter].join(" ")

/** The key that an owner is, if it is one. */
export const keyOf = (ownerId: string): string | undefined =>
  ownerId.startsWith("key:") ? ownerId.slice("key:".length) : undefined

const words = (text: string) => text.toLowerCase().split(/\s+/).filter(Boolean)

/** Keeps the owners whose names have all words of a search. */
export const matching = (limits: ReadonlyArray<LimitState>, search: string): ReadonlyArray<LimitState> => {
  const wanted = words(search)
  return limits.filter(({ scope_id, scope_name }) => {
    const text = `${scope_name} ${scope_id ?? ""}`.toLowerCase()
    return wanted.every((word) => text.includes(word))
  })
}

import { page } from "../../../api/control.ts"
import type { BodyOf } from "../../../api/Endpoints.ts"
import { type Key, type KeyQuery, keysPath } from "../words/key.ts"

export type KeyFilter = NonNullable<BodyOf<"POST", "/admin-ui/admin/bulk-key-changes">["filter"]>

/** All keys that match a filter: the server picks them when the change begins. */
export interface Matching {
  readonly kind: "matching"
  readonly filter: KeyFilter
  readonly count: number
  /** More than a change takes. */
  readonly isTooMany: boolean
}

export type Selection = Matching | { readonly kind: "picked"; readonly keys: ReadonlyArray<Key> }

export const countOf = (selection: Selection): number =>
  selection.kind === "picked" ? selection.keys.length : selection.count

/** `undefined` for a list that is not a selection by filters: how near a key is to its limits changes all the time. */
export const filterOf = ({ near_limit, sort_by: _, sort_order: __, ...filter }: KeyQuery): KeyFilter | undefined =>
  near_limit === undefined ? filter : undefined

/** New secrets pass through the browser, which keeps so many. */
export const mostRead = 5_000
const pageSize = 500

/** Reads the keys of a selection. */
export const keysOf = async (selection: Selection): Promise<ReadonlyArray<Key>> => {
  if (selection.kind === "picked") return selection.keys
  const found: Array<Key> = []
  let cursor: string | undefined
  do {
    const { next, rows } = await page(keysPath, { query: { ...selection.filter, limit: pageSize } }, cursor)
    found.push(...rows)
    cursor = next
  } while (cursor !== undefined && found.length < mostRead)
  return found.slice(0, mostRead)
}

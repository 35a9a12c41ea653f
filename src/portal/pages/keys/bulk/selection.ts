import { page } from "../../../api/control.ts"
import type { BodyOf } from "../../../api/Endpoints.ts"
import { type Key, type KeyQuery, keysPath } from "../words/key.ts"

export type KeyFilter = NonNullable<BodyOf<"POST", "/admin-ui/admin/bulk-key-changes">["filter"]>

/** The keys that were picked, or all that match: the server picks these when the change begins. */
export type Selection =
  | { readonly kind: "picked"; readonly keys: ReadonlyArray<Key> }
  | { readonly kind: "matching"; readonly filter: KeyFilter; readonly count: number }

export const countOf = (selection: Selection): number =>
  selection.kind === "picked" ? selection.keys.length : selection.count

/** `undefined` for a list that is not a selection by filters: how near a key is to its limits changes all the time. */
export const filterOf = ({
  near_limit,
  project_id,
  q,
  state,
  tag,
  team_id
}: Partial<KeyQuery>): KeyFilter | undefined =>
  near_limit !== undefined
    ? undefined
    : {
        ...(q !== undefined && { q: String(q) }),
        ...(project_id !== undefined && { project_id: String(project_id) }),
        ...(team_id !== undefined && { team_id: String(team_id) }),
        ...(tag !== undefined && { tag: String(tag) }),
        ...(state !== undefined && { state: stateOf(state) })
      }

const states = ["active", "disabled", "expired", "revoked"] as const
const stateOf = (state: unknown) => states.find((one) => one === state) ?? "active"

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

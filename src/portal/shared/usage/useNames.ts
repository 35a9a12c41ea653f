import { useRange } from "../../address/range.ts"
import { useApi } from "../../api/queries.ts"
import { shownText } from "../foreign/marks.ts"
import type { FilterName } from "./fields.ts"

/** So many are offered to a token that may not list keys. */
export const mostUsed = 200

const useTimes = () => {
  const { range } = useRange()
  return { from: range.from.toISOString(), to: range.to.toISOString() }
}

/** The name of the key or project of a filter, if it was used in the range, or else its id. */
export const useName = (filter: FilterName, id: string): string => {
  const times = useTimes()
  const ofKey = useApi(
    "/admin-ui/admin/usage/by-key",
    { query: { ...times, key_id: id, breakdown_limit: 1 } },
    { enabled: filter === "key_id" }
  )
  const ofProject = useApi(
    "/admin-ui/admin/usage/by-project",
    { query: { ...times, project_id: id, breakdown_limit: 1 } },
    { enabled: filter === "project_id" }
  )
  const found = [...(ofKey.data ?? []), ...(ofProject.data ?? [])].find(({ name }) => name === id)
  return found?.display_name ?? id
}

export interface Named {
  readonly value: string
  readonly label: string
}

/** The keys that were used in the range, the most used first. */
export const useUsedKeys = (): ReadonlyArray<Named> => {
  const keys = useApi("/admin-ui/admin/usage/by-key", { query: { ...useTimes(), breakdown_limit: mostUsed } })
  return (keys.data ?? []).map(({ display_name, name }) => ({ value: name, label: shownText(display_name) }))
}

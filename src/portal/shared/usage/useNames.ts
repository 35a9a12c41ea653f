import { useRange } from "../../address/range.ts"
import { useApi } from "../../api/queries.ts"

const most = 200

/** Names for the ids of the keys and projects that were used in the range. */
export const useNames = (keys: boolean, projects: boolean): ((id: string) => string) => {
  const found = useNamed(keys, projects)
  return (id) => found.find(({ value }) => value === id)?.label ?? id
}

export interface Named {
  readonly value: string
  readonly label: string
}

/** The keys and projects that were used in the range, the most used first. */
export const useNamed = (keys: boolean, projects: boolean): ReadonlyArray<Named> => {
  const { range } = useRange()
  const query = { from: range.from.toISOString(), to: range.to.toISOString(), breakdown_limit: most }
  const ofKeys = useApi("/admin-ui/admin/usage/by-key", { query }, { enabled: keys })
  const ofProjects = useApi("/admin-ui/admin/usage/by-project", { query }, { enabled: projects })
  return [...(ofKeys.data ?? []), ...(ofProjects.data ?? [])].map(({ display_name, name }) => ({
    value: name,
    label: display_name
  }))
}

import { useTextSearch } from "../../address/search.ts"
import { useProjectName } from "../../shared/keys/ProjectPicker.tsx"
import type { Filter } from "../../shared/table/FilterBar.tsx"
import type { KeyQuery } from "./words/key.ts"

const states = ["active", "disabled", "expired", "revoked"] as const
const orders = ["asc", "desc"] as const
type Sort = NonNullable<KeyQuery["sort_by"]>

/** All orders of the server, each in the direction that the server has if nothing else is said. */
const usualOrder: Readonly<Record<Sort, (typeof orders)[number]>> = {
  created_at: "desc",
  last_used_at: "desc",
  expires_at: "asc",
  rotation_due_at: "asc",
  spend: "desc"
}

const isSort = (text: string | undefined): text is Sort => text !== undefined && Object.hasOwn(usualOrder, text)

const oneOf = <Name extends string>(names: ReadonlyArray<Name>, text: string | undefined): Name | undefined =>
  names.find((name) => name === text)

/** Returns the query of the list as the address says it. */
export const useKeyQuery = () => {
  const { change, text } = useTextSearch()
  const asked = text("sort_by")
  const by = isSort(asked) ? asked : "created_at"
  const order = oneOf(orders, text("sort_order")) ?? usualOrder[by]
  const query: KeyQuery = {
    ...given("q", text("q")),
    ...given("state", oneOf(states, text("state"))),
    ...given("tag", text("tag")),
    ...given("team_id", text("team_id")),
    ...given("project_id", text("project_id")),
    ...(text("near_limit") === "true" && { near_limit: "true" as const }),
    ...(asked !== undefined && { sort_by: by }),
    ...(order !== usualOrder[by] && { sort_order: order })
  }
  const sorting = {
    by,
    isReversed: order !== usualOrder[by],
    onSort: (next: string) => {
      const name = isSort(next) ? next : "created_at"
      const reversed = usualOrder[name] === "asc" ? "desc" : "asc"
      change({
        sort_by: name,
        sort_order: name === by && order === usualOrder[name] ? reversed : undefined
      })
    }
  }
  return { query, sorting }
}

const given = <Name extends string, Value>(name: Name, value: Value | undefined) =>
  value === undefined ? {} : { [name]: value }

export const keyFilters: ReadonlyArray<Filter> = [
  { name: "q", label: "Name, prefix, owner or tag" },
  { name: "state", label: "State", choices: [...states] },
  { name: "project_id", label: "Project", isProject: true },
  { name: "near_limit", label: "Near a limit", choices: [{ value: "true", label: "Near a limit" }] },
  { name: "team_id", label: "Team" },
  { name: "tag", label: "Tag" }
]

/** A filter in the words of the page, such as `State: active, Project: checkout`. */
export const useFilterWords = (filter: Readonly<Record<string, string>>): string => {
  const project = useProjectName(filter["project_id"])
  return keyFilters
    .flatMap(({ choices = [], isProject = false, label, name }) => {
      const value = filter[name]
      if (value === undefined) return []
      const choice = choices.find((one) => typeof one !== "string" && one.value === value)
      return [`${label}: ${isProject ? project : typeof choice === "object" ? choice.label : value}`]
    })
    .join(", ")
}

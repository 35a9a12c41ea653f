import { keepPreviousData } from "@tanstack/react-query"
import { useMemo } from "react"
import type { Range } from "../../../address/range.ts"
import { call } from "../../../api/control.ts"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useRefresh } from "../../../api/queries.ts"
import { useReadPages } from "../../../api/reads.ts"
import type { UsageFilters } from "../../../shared/usage/fields.ts"
import { groupOf } from "./groups.ts"
import { measureOf } from "./measures.ts"

const pageSize = 100

type Sums = ResponseOf<"GET", "/admin-ui/admin/usage/by-key">

interface Page {
  readonly groups: Sums
  readonly next: number | undefined
}

export const timesOf = ({ from, to }: Pick<Range, "from" | "to">) => ({
  from: from.toISOString(),
  to: to.toISOString()
})

/** The order of the groups: by the measure, the most or the least of it first. */
export const orderOf = (text: (name: string) => string | undefined) => ({
  sort_by: measureOf(text("measure")).sort,
  sort_order: text("sort_order") === "asc" ? ("asc" as const) : undefined
})

/** The request of the table of groups. It asks for one group more than it shows, which tells that there are more. */
export const breakdownRequest = (
  range: Pick<Range, "from" | "to">,
  text: (name: string) => string | undefined,
  filters: UsageFilters
) => ({
  path: groupOf(text("group")).path,
  query: { ...filters, ...timesOf(range), breakdown_limit: pageSize + 1, ...orderOf(text) }
})

/** Reads the groups, a hundred at a time. */
export const useGroups = ({ path, query }: ReturnType<typeof breakdownRequest>) => {
  const read = async (offset: number, signal: AbortSignal): Promise<Page> => {
    const place = offset === 0 ? undefined : offset
    const found = await call("GET", path, { query: { ...query, breakdown_offset: place } }, { signal })
    return { groups: found.slice(0, pageSize), next: found.length > pageSize ? offset + pageSize : undefined }
  }
  const groups = useReadPages<Page, number>({
    queryKey: [path, query, "pages"],
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: 0,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    refetchInterval: useRefresh()
  })
  const pages = groups.data?.pages
  // a group may have moved to a later page since the page before was read
  const found = useMemo(
    () => [...new Map((pages ?? []).flatMap((page) => page.groups).map((group) => [group.name, group])).values()],
    [pages]
  )
  return { groups, found }
}

import { keepPreviousData } from "@tanstack/react-query"
import { useMemo } from "react"
import { call } from "../../api/control.ts"
import type { QueryOf, ResponseOf } from "../../api/Endpoints.ts"
import { type List, pagesOf } from "../../api/queries.ts"
import { useReadPages } from "../../api/reads.ts"

export const eventsPath = "/admin-ui/admin/usage/events"
type EventsPage = ResponseOf<"GET", typeof eventsPath>
export type UsageRow = EventsPage["rows"][number]
export type EventsQuery = Omit<QueryOf<"GET", typeof eventsPath>, "cursor" | "offset" | "limit">

const pageSize = 100

type Place = { readonly cursor: string } | { readonly offset: number } | undefined

const nextOf = ({ has_more, next_cursor, offset }: EventsPage): Place =>
  next_cursor !== null ? { cursor: next_cursor } : has_more ? { offset: offset + pageSize } : undefined

/** Reads recorded requests page by page: by a cursor in the order of time, and else by an offset. */
export const useUsageEvents = (query: EventsQuery): List<UsageRow> => {
  const read = (place: Place, signal: AbortSignal) =>
    call("GET", eventsPath, { query: { ...query, limit: pageSize, ...place } }, { signal })
  const found = useReadPages<EventsPage, Place>({
    queryKey: [eventsPath, query, "pages"],
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: undefined,
    getNextPageParam: nextOf,
    placeholderData: keepPreviousData
  })
  const pages = found.data?.pages
  const rows = useMemo(() => (pages ?? []).flatMap((page) => page.rows), [pages])
  const readPages = (signal: AbortSignal) =>
    pagesOf(async (place: Place) => {
      const page = await read(place, signal)
      return { rows: page.rows, next: nextOf(page) }
    })
  return { rows, query: found, readPages }
}

import { keepPreviousData } from "@tanstack/react-query"
import { useMemo } from "react"
import { call } from "../../../api/control.ts"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { type List, pagesOf, useRefresh } from "../../../api/queries.ts"
import { useReadPages } from "../../../api/reads.ts"

export const ownPath = "/admin-ui/v1/me/requests"
type Answer = ResponseOf<"GET", typeof ownPath>
const refreshMs = 15_000
export type OwnRequest = Answer["rows"][number]

export interface OwnFilter {
  readonly from: string
  readonly to?: string | undefined
  readonly status?: "success" | "failure" | undefined
  readonly model?: string | undefined
}

/** The requests of the key, page by page. Their cursor is in the body of the response. */
export const useOwnRequests = (filter: OwnFilter): List<OwnRequest> => {
  const read = (cursor: string | undefined, signal: AbortSignal) =>
    call("GET", ownPath, { query: { ...filter, limit: 100, cursor } }, { signal })
  const query = useReadPages<Answer, string | undefined>({
    queryKey: [ownPath, filter, "pages"],
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: useRefresh({ refreshMs })
  })
  const pages = query.data?.pages
  const rows = useMemo(() => (pages ?? []).flatMap((page) => page.rows), [pages])
  const readPages = (signal: AbortSignal) =>
    pagesOf(async (cursor: string | undefined) => {
      const page = await read(cursor, signal)
      return { rows: page.rows, next: page.next_cursor ?? undefined }
    })
  return { rows, query, readPages }
}

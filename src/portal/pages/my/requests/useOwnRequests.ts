import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query"
import { useMemo } from "react"
import type { ApiError } from "../../../api/ApiError.ts"
import { call } from "../../../api/control.ts"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import type { List } from "../../../api/queries.ts"

export const ownPath = "/admin-ui/v1/me/requests"
type Answer = ResponseOf<"GET", typeof ownPath>
export type OwnRequest = Answer["rows"][number]

export interface OwnFilter {
  readonly from: string
  readonly to?: string | undefined
  readonly status?: "success" | "failure" | undefined
  readonly model?: string | undefined
}

/** The requests of the key, page by page. Their cursor is in the body of the response. */
export const useOwnRequests = (filter: OwnFilter): List<OwnRequest> => {
  const query = useInfiniteQuery<
    Answer,
    ApiError,
    { readonly pages: ReadonlyArray<Answer> },
    ReadonlyArray<unknown>,
    string | undefined
  >({
    queryKey: [ownPath, filter, "pages"],
    queryFn: ({ pageParam, signal }) =>
      call(
        "GET",
        ownPath,
        { query: { ...filter, limit: 100, ...(pageParam !== undefined && { cursor: pageParam }) } },
        { signal }
      ),
    initialPageParam: undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: 15_000
  })
  const pages = query.data?.pages
  const rows = useMemo(() => (pages ?? []).flatMap((page) => page.rows), [pages])
  return { rows, query }
}

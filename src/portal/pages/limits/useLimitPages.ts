import { keepPreviousData } from "@tanstack/react-query"
import { useMemo } from "react"
import { useTextSearch } from "../../address/search.ts"
import { addressOf, type Page, page } from "../../api/control.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useRefresh } from "../../api/queries.ts"
import { useReadPages } from "../../api/reads.ts"
import { type LimitPage, matching, statePath } from "./state/limitStates.ts"

/** As many as one page can have. */
const most = 500

/** Limits are read again so often. A limit that is crossed is heard of at once. */
const refreshMs = 10_000
const topics = ["limits"] as const

const scopes = ["project", "team"] as const

/** The limits of all keys, of a project or of a team, those nearest to their maximum first. */
export const useLimitPages = () => {
  const { text } = useTextSearch()
  const scope = scopes.find((one) => one === text("scope"))
  const id = text("id")
  const query = {
    ...(scope !== undefined && id !== undefined ? { scope, id } : { scope: "all" as const }),
    limit: most
  }
  const found = useReadPages<Page<LimitPage>, string | undefined>({
    queryKey: [statePath, query, "pages"],
    queryFn: ({ pageParam, signal }) => page(statePath, { query }, pageParam, { signal }),
    initialPageParam: undefined,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    refetchInterval: useRefresh({ refreshMs })
  })
  useLiveRefresh(topics, [statePath])
  const pages = found.data?.pages
  const search = text("q") ?? ""
  const limits = useMemo(
    () =>
      matching(
        (pages ?? []).flatMap(({ rows }) => rows.limits).toSorted((a, b) => (b.share ?? -1) - (a.share ?? -1)),
        search
      ),
    [pages, search]
  )
  return {
    limits,
    looked: lookedOf((pages ?? []).map(({ rows }) => rows)),
    query: found,
    address: addressOf(statePath, { query })
  }
}

export interface Looked {
  readonly keys: number
  readonly backTo: string | null
  readonly leftOut: number
}

const lookedOf = (pages: ReadonlyArray<LimitPage>): Looked => ({
  keys: pages.reduce((sum, { keys_looked_at }) => sum + keys_looked_at, 0),
  backTo: pages.at(-1)?.looked_back_to ?? null,
  leftOut: pages.reduce((sum, { left_out }) => sum + left_out, 0)
})

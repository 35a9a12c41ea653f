import { useMemo } from "react"
import { useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import { queryOf } from "./searchText.ts"

const ages = /^\d+[mhd]$/

/** The query of the API that the address asks for. Without a time of its own, a search takes the range of the page. */
export const useTaskSearch = () => {
  const { text } = useTextSearch()
  const { range } = useRange()
  const asked = text("q") ?? ""
  return useMemo(() => {
    const query = queryOf(asked)
    if (query["since"] !== undefined || query["until"] !== undefined) return query
    return range.isRelative && ages.test(range.text)
      ? { ...query, since: range.text }
      : { ...query, since: range.from.toISOString(), until: range.to.toISOString() }
    // a relative range is the same text while the time goes on
  }, [asked, range])
}

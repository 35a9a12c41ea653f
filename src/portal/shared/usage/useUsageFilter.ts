import { useMemo } from "react"
import { useTextSearch } from "../../address/search.ts"
import { filterNames, type UsageFilters } from "./fields.ts"

/** The filters that the address has. The server says which values are not valid. */
export const useUsageFilter = (): UsageFilters => {
  const { text } = useTextSearch()
  const texts = filterNames.map((name) => text(name) ?? "")
  const joined = texts.join("\u0000")
  return useMemo(
    () =>
      Object.fromEntries(
        joined.split("\u0000").flatMap((value, place) => (value === "" ? [] : [[filterNames[place] ?? "", value]]))
      ),
    [joined]
  )
}

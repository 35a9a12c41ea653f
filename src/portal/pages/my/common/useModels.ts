import { useMemo } from "react"
import { useApi } from "../../../api/queries.ts"

/** The models that the key may call, as far as they have names of their own, and whether others are allowed too. */
export const useModels = () => {
  const query = useApi("/admin-ui/v1/me/models", {})
  const { data } = query
  return useMemo(() => {
    const { allowed = null, priced = [], used = [] } = data ?? {}
    const exact = (allowed ?? []).filter((name) => !name.endsWith("*"))
    const patterns = (allowed ?? []).filter((name) => name.endsWith("*"))
    const names = [...new Set([...priced.map(({ model }) => model), ...exact])].sort()
    const begun = patterns[0]?.replace(/[-*]+$/, "") || undefined
    /** Somebody goes on with what the key has used before, of which a price is the more likely choice. */
    const first =
      (used.find(({ input_usd_per_million: price }) => price !== null) ?? used[0])?.model ?? names[0] ?? begun
    return { query, allowsAll: data !== undefined && allowed === null, names, patterns, priced, used, first }
  }, [data, query])
}

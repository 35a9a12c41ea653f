import { useLiveRefresh } from "../../api/live.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"

const path = "/admin-ui/admin/model-prices"
const topics = ["configuration"] as const
const paths = [path]

/** Returns a model that a key may call: one with a price, or what its patterns begin with. Follows the prices. */
export const useFirstModel = (allowed: ReadonlyArray<string> | null) => {
  const maySee = useAllowed("usage:read")
  const priced = useApi(path, {}, { enabled: maySee })
  useLiveRefresh(topics, paths)
  const fits = (model: string) =>
    allowed === null ||
    allowed.some((pattern) => (pattern.endsWith("*") ? model.startsWith(pattern.slice(0, -1)) : model === pattern))
  const found = priced.data?.map(({ model }) => model).find(fits)
  const begun = allowed?.[0]?.replace(/[-*]+$/, "")
  return {
    name: found ?? (begun === "" ? undefined : begun),
    isUnpriced: priced.data !== undefined && found === undefined
  }
}

import { useApi } from "../../../api/queries.ts"

/** Layers are known by kind and scope here, and by an id to the API. */
export const useLayerId = (owner: string | undefined) => {
  const layers = useApi("/admin-ui/admin/policy-layers", { query: { limit: 500 } }, { enabled: owner !== undefined })
  const found = layers.data?.find(({ kind, scope_id }) => `${kind}:${scope_id ?? ""}` === owner)
  return { id: found?.id, query: layers }
}

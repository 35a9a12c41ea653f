import { useApi } from "../../api/queries.ts"

/** The API describes the fields of policies, so that forms need not know them. */
export const usePolicyFields = () => useApi("/admin-ui/admin/policy/fields", {})

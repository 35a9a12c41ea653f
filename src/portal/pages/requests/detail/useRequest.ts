import { useApi } from "../../../api/queries.ts"
import { eventsPath } from "../../../shared/usage/useUsageEvents.ts"

/** Records are written a second or two after a request has ended. */
const againMs = 2_000

/** All that is known of a request: its record, how it was decided, and what the gateway did. */
export const useRequest = (id: string) => {
  const event = useApi(eventsPath, { query: { request_id: id, limit: 1 } })
  const row = event.data?.rows[0]
  // without a record there is nothing to explain
  const enabled = row !== undefined
  const bundle = useApi("/admin-ui/admin/debug-bundles/:request_id", { params: { request_id: id } }, { enabled })
  const explanation = useApi("/admin-ui/admin/policy/explain/:request_id", { params: { request_id: id } }, { enabled })
  const asked = { scope: "key", id: row?.key_id, limit: 50 } as const
  const limits = useApi("/admin-ui/admin/limits/state", { query: asked }, { enabled })
  const isEarly = event.data !== undefined && row === undefined
  useApi(eventsPath, { query: { request_id: id, limit: 1 } }, { enabled: isEarly, refreshAfter: () => againMs })
  return { event, row, bundle, explanation, limits, isEarly }
}

export type FoundRequest = ReturnType<typeof useRequest>
export type Explanation = NonNullable<FoundRequest["explanation"]["data"]>
export type Bundle = NonNullable<FoundRequest["bundle"]["data"]>

import type { UseQueryResult } from "@tanstack/react-query"
import type { ApiError } from "../../api/ApiError.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"

export type System = ResponseOf<"GET", "/admin-ui/admin/system">
export const systemPath = "/admin-ui/admin/system"

/** The parts of the page share one answer. */
export interface SystemProps {
  readonly query: UseQueryResult<System, ApiError>
}

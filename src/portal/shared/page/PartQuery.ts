import type { UseQueryResult } from "@tanstack/react-query"
import type { ApiError } from "../../api/ApiError.ts"

/** What a part of a page needs to know of its query. Lists have it too. */
export type PartQuery = Pick<
  UseQueryResult<unknown, ApiError>,
  "data" | "error" | "isPending" | "isPlaceholderData" | "dataUpdatedAt" | "refetch"
>

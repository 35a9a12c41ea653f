import type { UseQueryResult } from "@tanstack/react-query"
import type { ApiError } from "../../api/ApiError.ts"

/** A part of a page needs these members of its query. Lists have them, too. */
export type PartQuery = Pick<
  UseQueryResult<unknown, ApiError>,
  "data" | "error" | "isPending" | "isPlaceholderData" | "dataUpdatedAt" | "refetch"
>

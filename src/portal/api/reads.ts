import {
  hashKey,
  type InfiniteData,
  type QueryKey,
  type UseInfiniteQueryOptions,
  type UseInfiniteQueryResult,
  type UseQueryOptions,
  type UseQueryResult,
  useInfiniteQuery,
  useQuery
} from "@tanstack/react-query"
import { useState } from "react"
import type { ApiError } from "./ApiError.ts"

/**
 * TanStack Query clears the error of a read without data when the read is repeated, so error notes and alarms would
 * disappear during each repetition. These reads keep it until there is an answer or another error.
 */
export const useRead = <Body>(options: UseQueryOptions<Body, ApiError>): UseQueryResult<Body, ApiError> => {
  const result = useQuery(options)
  const error = useClearedError(options.queryKey, result)
  return error === undefined ? result : { ...result, ...failedWith(error) }
}

/** Reads a list page by page. */
export const useReadPages = <Page, Place>(
  options: UseInfiniteQueryOptions<Page, ApiError, InfiniteData<Page, Place>, QueryKey, Place>
): UseInfiniteQueryResult<InfiniteData<Page, Place>, ApiError> => {
  const result = useInfiniteQuery(options)
  const error = useClearedError(options.queryKey, result)
  return error === undefined
    ? result
    : { ...result, ...failedWith(error), isFetchNextPageError: false, isFetchPreviousPageError: false }
}

interface Failed {
  readonly key: string
  readonly at: number
  readonly error: ApiError
}

type Read = Pick<
  UseQueryResult<unknown, ApiError>,
  "data" | "error" | "errorUpdatedAt" | "isPending" | "isPlaceholderData"
>

/** Returns the error of the last read with this key while a read without data is repeated. */
const useClearedError = (
  queryKey: QueryKey,
  { data, error, errorUpdatedAt: at, isPending, isPlaceholderData }: Read
): ApiError | undefined => {
  const [failed, setFailed] = useState<Failed>()
  const isOfNow = failed !== undefined && failed.at === at && failed.key === hashKey(queryKey)
  if (error !== null && data === undefined && !isOfNow) setFailed({ key: hashKey(queryKey), at, error })
  return isOfNow && (isPending || isPlaceholderData) ? failed.error : undefined
}

const failedWith = (error: ApiError) =>
  ({
    status: "error",
    data: undefined,
    error,
    isError: true,
    isLoading: false,
    isLoadingError: true,
    isPending: false,
    isPlaceholderData: false,
    isRefetchError: false,
    isSuccess: false
  }) as const

import type { UseInfiniteQueryResult, UseQueryResult } from "@tanstack/react-query"
import { useState } from "react"
import type { ApiError } from "./ApiError.ts"

interface Failed {
  readonly error: ApiError
  readonly at: number
}

/** Why it has failed, while a read that has never answered is asked again. */
const useForgotten = ({
  data,
  error,
  errorUpdatedAt,
  isPending,
  isPlaceholderData
}: Pick<UseQueryResult<unknown, ApiError>, "data" | "error" | "errorUpdatedAt" | "isPending" | "isPlaceholderData">):
  | ApiError
  | undefined => {
  const [failed, setFailed] = useState<Failed>()
  if (error !== null && data === undefined && failed?.at !== errorUpdatedAt) setFailed({ error, at: errorUpdatedAt })
  // the time of the last failure is another one once the parameters are others
  return (isPending || isPlaceholderData) && failed?.at === errorUpdatedAt ? failed.error : undefined
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

/**
 * TanStack Query forgets the error of a read without data as soon as it asks again. What tells of it would be away for
 * that moment, each time: this keeps the error until there is an answer or another error.
 */
export const useKeptError = <Body>(result: UseQueryResult<Body, ApiError>): UseQueryResult<Body, ApiError> => {
  const error = useForgotten(result)
  return error === undefined ? result : { ...result, ...failedWith(error) }
}

/** `useKeptError` for a list that is read page by page. */
export const useKeptErrorOfList = <Body>(
  result: UseInfiniteQueryResult<Body, ApiError>
): UseInfiniteQueryResult<Body, ApiError> => {
  const error = useForgotten(result)
  return error === undefined
    ? result
    : { ...result, ...failedWith(error), isFetchNextPageError: false, isFetchPreviousPageError: false }
}

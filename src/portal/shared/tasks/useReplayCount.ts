import type { UseQueryResult } from "@tanstack/react-query"
import type { ApiError } from "../../api/ApiError.ts"
import { useRead } from "../../api/reads.ts"
import type { CheckedReplay, ReplaySelection } from "../../api/TaskTypes.ts"
import { callTasks } from "../../api/tasks.ts"
import { countedText, countText } from "../words/format.ts"

/**
 * Asks the server how many open letters a replay would take now. Live refreshes of tasks leave the count alone: the
 * server reads every letter for it.
 */
export const useReplayCount = (selection: ReplaySelection): UseQueryResult<CheckedReplay, ApiError> =>
  useRead<CheckedReplay>({
    queryKey: ["count of a replay", selection],
    queryFn: ({ signal }) => callTasks("POST", "/dlq/replays/check", { body: selection, signal }),
    staleTime: 0
  })

/** `12 open letters`, or `more than 10,000 open letters`. */
export const openLetters = ({ total, truncated }: CheckedReplay): string =>
  truncated ? `more than ${countText(total)} open letters` : countedText(total, "open letter")

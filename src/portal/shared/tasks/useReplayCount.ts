import { type UseQueryResult, useQuery } from "@tanstack/react-query"
import type { ApiError } from "../../api/ApiError.ts"
import type { CheckedReplay, ReplaySelection } from "../../api/TaskTypes.ts"
import { callTasks, tasksPath } from "../../api/tasks.ts"
import { countedText, countText } from "../words/format.ts"

/** Asks the server how many letters a replay would take now. With `force` also those that are not open. */
export const useReplayCount = (selection: ReplaySelection, force = false): UseQueryResult<CheckedReplay, ApiError> =>
  useQuery<CheckedReplay, ApiError>({
    queryKey: [tasksPath, "/dlq/replays/check", selection, force],
    queryFn: ({ signal }) => callTasks("POST", "/dlq/replays/check", { body: { ...selection, force }, signal }),
    staleTime: 0
  })

/** `12 open letters`, or `more than 10,000 open letters`. */
export const openLetters = ({ total, truncated }: CheckedReplay): string =>
  truncated ? `more than ${countText(total)} open letters` : countedText(total, "open letter")

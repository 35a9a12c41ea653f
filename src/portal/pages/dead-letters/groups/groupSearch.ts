import type { DeadLetterGroup } from "../../../api/TaskTypes.ts"

type GroupName = Pick<DeadLetterGroup, "queue_name" | "reason" | "exception_type">

/** The address of the page of a group. */
export const groupSearch = ({ exception_type, queue_name, reason }: GroupName) => ({
  queue_name,
  reason,
  ...(exception_type !== null && { exception_type })
})

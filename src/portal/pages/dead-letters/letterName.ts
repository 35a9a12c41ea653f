/** Enough of the id of a dead letter to tell two of them apart. */
export const shortId = (dlqId: string): string => dlqId.slice(0, 12)

/** People know a dead letter by the id of its task. */
export const letterName = ({ dlq_id, task_id }: { readonly dlq_id: string; readonly task_id: string | null }): string =>
  task_id ?? shortId(dlq_id)

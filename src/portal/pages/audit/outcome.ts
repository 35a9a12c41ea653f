import type { AuditEvent } from "./event.ts"

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members => typeof value === "object" && value !== null

const textOf = (value: unknown): string => (Array.isArray(value) ? value.join(", ") : String(value))

/** The members of a result in the order in which they are told, with the words for each. */
const results: ReadonlyArray<readonly [name: string, tell: (value: string) => string]> = [
  ["changed", (paths) => `changed ${paths}`],
  ["state", (state) => state.replaceAll("_", " ")],
  ["dlq_id", (id) => `dead letter ${id.slice(0, 12)}`],
  ["task_id", (id) => `task ${id}`],
  ["problem", (problem) => problem]
]

/** Returns the words for what came of an operation on tasks, or `undefined` for other events. */
export const outcomeOf = ({ action, after }: AuditEvent): string | undefined => {
  if (action === "tasks:operate") return "asked for: its result is the next event"
  if (action !== "tasks:operated" || !isMembers(after)) return undefined
  const { result, status } = after
  const members = isMembers(result) ? result : {}
  const told = results.flatMap(([name, tell]) => {
    const value = members[name]
    return value === undefined || value === null ? [] : [tell(textOf(value))]
  })
  return [Number(status) < 400 ? "done" : `refused with ${String(status)}`, ...told].join(" · ")
}

/** A price is its own description. Other objects have too many fields for a line. */
export const madeText = ({ action, after, target_type }: AuditEvent): string => {
  if (action === "policies:simulate") return "nothing: it was tried out"
  if (target_type !== "model_price" || !isMembers(after)) return "made"
  return `made: $${String(after["input_usd_per_million"])} in, $${String(after["output_usd_per_million"])} out`
}

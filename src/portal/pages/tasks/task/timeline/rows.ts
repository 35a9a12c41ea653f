import { countText } from "../../../../shared/words/format.ts"
import { type Attempt, failures, type Outcome } from "../../attempts/attempts.ts"

/** A row of the timeline: the attempts of one task, or those of all tasks of a type together. */
export interface TimelineRow {
  readonly id: string
  readonly kind: "task" | "group"
  readonly label: string
  /** Of a group: how many of its tasks ended how. */
  readonly detail: string
  readonly attempts: ReadonlyArray<Attempt>
  readonly isOpen: boolean
  /** Of a group: its number of tasks. */
  readonly tasks: number
}

/** More rows are folded into their groups. */
export const mostRows = 500

/** The rows: the task itself first, then its children by their types. */
export const rowsOf = (
  attempts: ReadonlyArray<Attempt>,
  taskId: string,
  toggled: ReadonlySet<string>
): ReadonlyArray<TimelineRow> => {
  const byTask = Map.groupBy(attempts, (attempt) => attempt.taskId)
  const own = byTask.get(taskId) ?? []
  byTask.delete(taskId)
  const children = [...byTask]
  const isFolded = children.length > mostRows
  const groups = Map.groupBy(children, ([, [first]]) => first?.type ?? "–")
  return [
    ...(own.length === 0 ? [] : [taskRow(taskId, own)]),
    ...[...groups].flatMap(([type, tasks]) => {
      if (tasks.length === 1) return tasks.map(([id, made]) => taskRow(id, made))
      const id = `group ${type}`
      const isOpen = toggled.has(id) ? isFolded : !isFolded
      const rows = isOpen ? tasks.map(([child, made]) => taskRow(child, made)) : []
      return [groupRow(id, type, tasks, isOpen), ...rows]
    })
  ]
}

const taskRow = (id: string, attempts: ReadonlyArray<Attempt>): TimelineRow => ({
  id,
  kind: "task",
  label: id,
  detail: "",
  attempts,
  isOpen: false,
  tasks: 1
})

const groupRow = (
  id: string,
  type: string,
  tasks: ReadonlyArray<readonly [string, ReadonlyArray<Attempt>]>,
  isOpen: boolean
): TimelineRow => {
  const ends = Map.groupBy(tasks, ([, made]) => made.at(-1)?.outcome ?? "unknown")
  return {
    id,
    kind: "group",
    label: type,
    detail: [...ends].map(([outcome, { length }]) => `${countText(length)} ${groupWords[outcome]}`).join(", "),
    attempts: tasks.flatMap(([, made]) => made).sort((one, other) => one.start - other.start),
    isOpen,
    tasks: tasks.length
  }
}

const groupWords: Readonly<Record<Outcome, string>> = {
  done: "done",
  retried: "waiting for a retry",
  dead: "failed",
  handed_over: "handed over",
  running: "running",
  cancelled: "cancelled",
  unknown: "with no known end"
}

export interface Span {
  readonly from: number
  readonly to: number
}

/** From the first start to the last end, or until now while something runs. */
export const wholeOf = (attempts: ReadonlyArray<Attempt>, now: number): Span => {
  let [from, to] = [Number.POSITIVE_INFINITY, 0]
  for (const { end, outcome, retry, start } of attempts) {
    from = Math.min(from, start)
    to = Math.max(to, end ?? (outcome === "running" ? now : start), retry?.until ?? retry?.from ?? 0)
  }
  return from > to ? { from: now - 1_000, to: now } : { from, to }
}

/** The drawn span has a margin, so that the first and the last bar do not stand at the edge. */
export const spanOf = (attempts: ReadonlyArray<Attempt>, now: number): Span => {
  const { from, to } = wholeOf(attempts, now)
  const margin = Math.max(20, (to - from) * 0.02)
  return { from: from - margin, to: to + margin }
}

export const failuresOf = (rows: ReadonlyArray<TimelineRow>): ReadonlyArray<Attempt> =>
  rows
    .filter(({ isOpen, kind }) => kind === "task" || !isOpen)
    .flatMap((row) => row.attempts.filter(({ outcome }) => failures.has(outcome)))
    .sort((one, other) => one.start - other.start)

import type { LetterState, ReplaySelection } from "../../../api/TaskTypes.ts"
import type { Filter } from "../../../shared/table/FilterBar.tsx"

/** The filter by which the server selects letters. */
export type LetterFilter = Extract<ReplaySelection, { readonly filter: unknown }>["filter"]

const states: ReadonlyArray<LetterState> = ["dead_lettered", "replay_unknown", "replayed", "replaced", "archived"]

export const letterFilters: ReadonlyArray<Filter> = [
  { name: "task_id", label: "Task id" },
  { name: "state", label: "State", choices: states },
  { name: "source_queue_name", label: "Queue" },
  { name: "queue_name", label: "Dead-letter queue" },
  { name: "exception_type", label: "Exception" },
  { name: "reason", label: "Reason" }
]

type Texts = (name: string) => string | undefined

/** The filters that the address has. */
export const letterQuery = (text: Texts) => Object.fromEntries(letterFilters.map(({ name }) => [name, text(name)]))

const open = "dead_lettered" satisfies LetterState

/** Only open letters can be selected by a filter. Those of another state are selected one by one. */
export const isOfOpen = (text: Texts): boolean => (text("state") ?? open) === open

/** The same as a selection of the open letters. */
export const letterFilter = (text: Texts): LetterFilter => ({ ...letterQuery(text), state: open })

/** A filter in the words of the page, such as `State: dead_lettered, Queue: mails`. */
export const filterWords = (filter: LetterFilter): string => {
  const values = new Map(Object.entries(filter))
  return letterFilters
    .flatMap(({ label, name }) => (values.get(name) == null ? [] : [`${label}: ${values.get(name)}`]))
    .join(", ")
}

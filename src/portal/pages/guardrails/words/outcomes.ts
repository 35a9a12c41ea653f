import type { ResponseOf } from "../../../api/Endpoints.ts"

type OutcomeName = keyof ResponseOf<"GET", "/admin-ui/admin/guardrails/:name/coverage">["keys"]

/** A way in which the guardrail treats the requests of a key. */
export interface Outcome {
  readonly outcome: OutcomeName
  readonly label: string
  readonly detail: string
}

export const outcomes: ReadonlyArray<Outcome> = [
  { outcome: "mandatory", label: "Mandatory", detail: "a policy demands it" },
  { outcome: "by_default", label: "By default", detail: "every request, as it is on by default" },
  { outcome: "optional", label: "Optional", detail: "a request may ask for it" },
  { outcome: "forbidden", label: "Forbidden", detail: "requests pass without it" },
  { outcome: "refused", label: "Refused", detail: "policies contradict each other, or it is disabled" },
  { outcome: "none", label: "Not selected", detail: "no policy selects it" }
]

export const outcomeOf = (name: string | undefined): Outcome | undefined =>
  outcomes.find(({ outcome }) => outcome === name)

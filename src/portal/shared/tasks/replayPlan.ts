import { fieldTime } from "../words/timeField.ts"

/** What a person writes of a plan. Empty texts leave the member to the server. */
export interface PlanTexts {
  readonly steps: string
  readonly rate: string
  readonly stop: string
  readonly wait: string
  /** As a field for a date and time has it. */
  readonly begin: string
}

/** The members of the plan as the API takes them. A text that is no number goes as it is: the server says what is wrong. */
export const planBody = (
  { begin, rate, steps, stop, wait }: PlanTexts,
  utc: boolean
): Readonly<Record<string, unknown>> => ({
  ...(steps.trim() !== "" && {
    steps: steps
      .split(/[\s,·]+/)
      .filter((size) => size !== "" && size !== "all")
      .map(numberOr)
  }),
  ...(rate.trim() !== "" && { rate: numberOr(rate) }),
  ...(stop.trim() !== "" && { stop_after: stop.trim() === "never" ? null : numberOr(stop) }),
  ...(wait.trim() !== "" && { wait_seconds: numberOr(wait) }),
  ...(begin !== "" && { begin_at: new Date(fieldTime(begin, utc)).toISOString() })
})

const numberOr = (text: string): number | string => {
  const number = Number(text.trim())
  return Number.isNaN(number) ? text.trim() : number
}

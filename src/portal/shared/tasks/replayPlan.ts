/** What a person writes of a plan. Empty texts leave the member to the server. */
export interface PlanTexts {
  readonly steps: string
  readonly rate: string
  readonly stop: string
  readonly wait: string
}

/** The members of the plan as the API takes them. A text that is no number goes as it is: the server says what is wrong. */
export const planBody = ({ rate, steps, stop, wait }: PlanTexts): Readonly<Record<string, unknown>> => ({
  ...(steps.trim() !== "" && {
    steps: steps
      .split(/[\s,·]+/)
      .filter((size) => size !== "" && size !== "all")
      .map(numberOr)
  }),
  ...(rate.trim() !== "" && { rate: numberOr(rate) }),
  ...(stop.trim() !== "" && { stop_after: stop.trim() === "never" ? null : numberOr(stop) }),
  ...(wait.trim() !== "" && { wait_seconds: numberOr(wait) })
})

const numberOr = (text: string): number | string => {
  const number = Number(text.trim())
  return Number.isNaN(number) ? text.trim() : number
}

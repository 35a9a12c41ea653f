const minuteMs = 60_000
const hourMs = 60 * minuteMs

export interface UntilChoice {
  readonly label: string
  readonly at: (now: Date) => Date
}

const atEndOfDay = (now: Date, days: number): Date =>
  new Date(now.getFullYear(), now.getMonth(), now.getDate() + days + 1)

/** Times that people mean. */
export const untilChoices: ReadonlyArray<UntilChoice> = [
  { label: "1 hour", at: (now) => new Date(now.getTime() + hourMs) },
  { label: "End of today", at: (now) => atEndOfDay(now, 0) },
  { label: "End of tomorrow", at: (now) => atEndOfDay(now, 1) },
  { label: "1 week", at: (now) => new Date(now.getTime() + 7 * 24 * hourMs) }
]

/** The text that a field for date and time takes, in the time of the browser. */
export const fieldText = (at: Date): string =>
  new Date(at.getTime() - at.getTimezoneOffset() * minuteMs).toISOString().slice(0, 16)

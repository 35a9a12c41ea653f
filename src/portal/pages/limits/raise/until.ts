const hourMs = 3_600_000

export interface UntilChoice {
  readonly label: string
  readonly at: (now: Date, utc: boolean) => Date
}

const atEndOfDay = (now: Date, days: number, utc: boolean): Date =>
  utc
    ? new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + days + 1))
    : new Date(now.getFullYear(), now.getMonth(), now.getDate() + days + 1)

/** Times that people mean. */
export const untilChoices: ReadonlyArray<UntilChoice> = [
  { label: "1 hour", at: (now) => new Date(now.getTime() + hourMs) },
  { label: "End of today", at: (now, utc) => atEndOfDay(now, 0, utc) },
  { label: "End of tomorrow", at: (now, utc) => atEndOfDay(now, 1, utc) },
  { label: "1 week", at: (now) => new Date(now.getTime() + 7 * 24 * hourMs) }
]

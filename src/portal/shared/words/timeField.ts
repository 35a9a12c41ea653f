// A field of the type `datetime-local` has a time without its zone.

/** Returns the text that a field takes: the time by the clock of the browser, or in UTC. */
export const fieldText = (at: Date, utc: boolean): string =>
  new Date(at.getTime() - (utc ? 0 : at.getTimezoneOffset() * 60_000)).toISOString().slice(0, 16)

/** Returns the time that the text of a field means, in milliseconds; `NaN` if it is not whole. */
export const fieldTime = (text: string, utc: boolean): number => Date.parse(utc ? `${text}Z` : text)

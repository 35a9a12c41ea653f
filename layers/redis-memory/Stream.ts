/** Milliseconds and sequence as one number: comparing it compares ids. */
export type Id = bigint

export interface Entry {
  readonly id: Id
  readonly fields: ReadonlyArray<string>
}

/** `last` outlives its entry: an id is never given twice. */
export interface Stream {
  readonly entries: Array<Entry>
  last: Id
}

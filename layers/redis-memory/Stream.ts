/** Milliseconds and sequence as one number, so that comparing numbers compares ids. */
export type Id = bigint

export interface Entry {
  readonly id: Id
  readonly fields: ReadonlyArray<string>
}

/** `last` outlives its entry, so no id is used twice. */
export interface Stream {
  readonly entries: Array<Entry>
  last: Id
}

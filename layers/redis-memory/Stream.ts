/** Milliseconds and sequence as one number, which compares like the id. */
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

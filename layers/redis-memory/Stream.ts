/** The milliseconds and the sequence number of an entry id, combined into one sortable number. */
export type Id = bigint

export interface Entry {
  readonly id: Id
  readonly fields: ReadonlyArray<string>
}

/** `last` is the highest id so far. It stays when its entry is deleted, so that no id is used twice. */
export interface Stream {
  readonly entries: Array<Entry>
  last: Id
}

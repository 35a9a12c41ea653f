/** The milliseconds and the sequence number of an entry id in one number, which has the same order. */
export type Id = bigint

export interface Entry {
  readonly id: Id
  readonly fields: ReadonlyArray<string>
}

/** `last` stays when its entry is deleted, so that no id is used twice. */
export interface Stream {
  readonly entries: Array<Entry>
  last: Id
}

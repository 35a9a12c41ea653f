/** Reads more of a response than its usage. The tap shows it what passes, and the reader keeps no bytes. */
export interface ResponseReader {
  /** Receives the `data:` line of an event, before `onJson` for the same event. */
  readonly onEvent: (line: Buffer) => void
  /** Receives JSON that the tap has parsed: a whole response, or an event with usage. */
  readonly onJson: (json: unknown) => void
}

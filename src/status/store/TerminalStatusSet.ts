/**
 * The statuses that end a task, unless a later status resumes it. Case and surrounding whitespace are ignored; a blank
 * status is never terminal. Default: `completed` and `failed`.
 */
export class TerminalStatusSet {
  readonly #statuses: ReadonlySet<string>

  constructor(statuses: Iterable<string> = ["completed", "failed"]) {
    this.#statuses = new Set([...statuses].map(normalize).filter((status) => status !== ""))
  }

  has(status: string | null | undefined): boolean {
    return typeof status === "string" && this.#statuses.has(normalize(status))
  }
}

const normalize = (status: string): string => status.trim().toLowerCase()

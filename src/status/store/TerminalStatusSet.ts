/**
 * The statuses that end a task, unless it is taken up again. Whatever their case and the blanks around them; a blank
 * status is never one of them. Default: `completed` and `failed`.
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

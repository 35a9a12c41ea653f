/**
 * The statuses that end a task. A later status may resume the task. Case and surrounding spaces are ignored; a blank
 * status never ends a task. Default: `completed` and `failed`.
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

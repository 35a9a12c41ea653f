/** The statuses that end a task. A later status can resume it. Not case-sensitive. Default: `completed`, `failed`. */
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

/**
 * The statuses that end a task. A later status can resume it. Not case-sensitive. Default: `completed`, `failed`. The
 * status `cancelled` always ends a task, because consumers publish it themselves.
 */
export class TerminalStatusSet {
  readonly #statuses: ReadonlySet<string>

  constructor(statuses: Iterable<string> = ["completed", "failed"]) {
    this.#statuses = new Set([...statuses, cancelled].map(normalize).filter((status) => status !== ""))
  }

  has(status: string | null | undefined): boolean {
    return typeof status === "string" && this.#statuses.has(normalize(status))
  }
}

const cancelled = "cancelled"

const normalize = (status: string): string => status.trim().toLowerCase()

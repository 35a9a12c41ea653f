import type { DetectorSet } from "../detect/DetectorSet.ts"

/** The original values by placeholder. They are kept in memory until the request ends. */
export type PlaceholderValues = ReadonlyMap<string, string>

export interface RedactionOptions {
  readonly detectors: DetectorSet
  /** The placeholders that replaced values of the request. */
  readonly known: PlaceholderValues
  /** True if `known` placeholders are replaced by their values, and values of the request stay. */
  readonly restore: boolean
  /** The numbers of the placeholders begin after this one. Default: 0. */
  readonly lastNumber?: number
}

/** One run of the guardrail on a request or a response. It numbers the placeholders and counts the findings. */
export class Redaction {
  readonly detectors: DetectorSet
  readonly restore: boolean
  readonly known: PlaceholderValues
  /** The new values by placeholder. */
  readonly found = new Map<string, string>()
  readonly #used: Set<string>
  readonly #requestValues: ReadonlySet<string>
  readonly #lastNumber: number
  readonly #lastNumbers = new Map<string, number>()
  readonly #counts = new Map<string, number>()
  #signedFindings = 0
  #lateFindings = 0

  constructor({ detectors, known, lastNumber = 0, restore }: RedactionOptions) {
    this.#lastNumber = lastNumber
    this.detectors = detectors
    this.known = known
    this.restore = restore
    this.#used = new Set(known.keys())
    this.#requestValues = new Set(restore ? known.values() : [])
  }

  /** Keeps a placeholder that a text already contains from being used for a value. */
  reserve(placeholder: string): void {
    this.#used.add(placeholder)
  }

  /** The number of findings in texts that must not change. */
  get signedFindings(): number {
    return this.#signedFindings
  }

  /** The number of findings of which a part was sent before they were whole. */
  get lateFindings(): number {
    return this.#lateFindings
  }

  addLateFinding(): void {
    this.#lateFindings++
  }

  /** A client may see a value that it sent itself. */
  addSignedFinding(value: string): void {
    if (!this.#requestValues.has(value)) this.#signedFindings++
  }

  /** Returns the text that replaces a finding. */
  replace(kind: string, value: string, raw: string): string {
    if (this.#requestValues.has(value)) return raw
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1)
    let number = this.#lastNumbers.get(kind) ?? this.#lastNumber
    let placeholder: string
    do placeholder = `[${kind}_${++number}]`
    while (this.#used.has(placeholder))
    this.#lastNumbers.set(kind, number)
    this.found.set(placeholder, value)
    return placeholder
  }

  /** The number of new values per kind, such as `email_count`. */
  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(
      this.detectors.kinds.toSorted().map((kind) => [`${kind.toLowerCase()}_count`, this.#counts.get(kind) ?? 0])
    )
  }
}

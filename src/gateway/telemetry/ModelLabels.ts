import { maxModelLabels, otherLabel } from "../../process/CallbackMetrics.ts"

/** Clients can invent model names. A name becomes a label only after an upstream responded without an error. */
export class ModelLabels {
  readonly #known = new Set<string>()

  of(model: string | undefined, status: number): string {
    if (model === undefined) return "none"
    if (this.#known.has(model)) return model
    if (status >= 400 || this.#known.size >= maxModelLabels) return otherLabel
    this.#known.add(model)
    return model
  }
}

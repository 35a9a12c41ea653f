import { isJsonObject, type JsonObject } from "../../messaging/envelope/Envelope.ts"
import type { Mistake } from "../../messaging/envelope/Errors.ts"
import { type Place, pathOf } from "./Place.ts"
import { keywords, unsupported } from "./SchemaKeywords.ts"
import { SchemaPatterns } from "./SchemaPatterns.ts"
import { type Check, type Verdict, type Visit, worse } from "./SchemaVisit.ts"
import * as SchemaWords from "./SchemaWords.ts"

const maxMistakes = 50
const maxNotes = 10
/** Bounds the time of a check to a few tenths of a second, whatever the schema and the payload are. */
const maxSteps = 2_000_000
const maxDepth = 300

export interface Compared {
  /** At most 50. */
  readonly mistakes: ReadonlyArray<Mistake>
  readonly hasMore: boolean
  /** The parts that were not checked: where they are, and why. At most 10. */
  readonly notChecked: ReadonlyArray<string>
}

/**
 * Compares a value with a JSON Schema (draft 2020-12). The schema is foreign text: it is read and never run, nothing
 * outside of it is loaded, and the time is bounded. What cannot be checked makes no mistake: it is named instead.
 */
export const compare = (schema: unknown, value: unknown, root: string): Compared => {
  const check = new SchemaCheck(schema, root)
  check.compare(schema, { value, at: undefined, tells: true })
  return { mistakes: check.mistakes, hasMore: check.hasMore, notChecked: [...check.notChecked.values()] }
}

class SchemaCheck implements Check {
  readonly mistakes: Array<Mistake> = []
  /** Each part once, where it was met first. */
  readonly notChecked = new Map<string, string>()
  readonly patterns = new SchemaPatterns()
  hasMore = false
  readonly #whole: unknown
  readonly #root: string
  readonly #told = new Set<string>()
  readonly #targets = new Map<string, unknown>()
  /** The verdicts of what a reference leads to: without them, a schema of two references takes exponential time. */
  readonly #verdicts = new Map<unknown, Map<unknown, Verdict>>()
  readonly #names = new Map<JsonObject, ReadonlyArray<string>>()
  #steps = maxSteps
  #depth = 0

  constructor(whole: unknown, root: string) {
    this.#whole = whole
    this.#root = root
  }

  compare(schema: unknown, visit: Omit<Visit, "schema">): Verdict {
    const { at, tells } = visit
    if (schema === true) return this.spend(1, at) ? "fits" : "unsure"
    if (schema === false) return this.fail("is not allowed here", at, tells)
    if (!isJsonObject(schema)) return this.leaveOut("a part of the schema that is no schema", at)
    if (this.#depth >= maxDepth) return this.leaveOut(`what is nested in more than ${maxDepth} levels`, at)
    this.#depth++
    const verdict = this.#compareKeywords({ ...visit, schema })
    this.#depth--
    return verdict
  }

  #compareKeywords(visit: Visit): Verdict {
    const { at, schema, tells } = visit
    const names = this.namesOf(schema)
    if (!this.spend(1 + names.length, at)) return "unsure"
    let verdict: Verdict = keywords.get("type")?.(visit, schema["type"], this) ?? "fits"
    // What else the schema demands would only repeat that the type is wrong.
    if (verdict === "fails") return verdict
    for (const name of names) {
      const keyword = name === "type" ? undefined : keywords.get(name)
      if (keyword !== undefined) verdict = worse(verdict, keyword(visit, schema[name], this))
      else if (unsupported.has(name)) verdict = worse(verdict, this.leaveOut(`the keyword ${name}`, at))
      if (verdict === "fails" && (!tells || this.hasMore)) return verdict
    }
    return verdict
  }

  /** Compares with what a `$ref` leads to. Only references into the schema itself are followed. */
  follow(reference: unknown, { at, tells, value }: Visit): Verdict {
    const target = this.resolve(reference)
    if (target === undefined) return this.leaveOut(`what ${SchemaWords.quoted(reference)} refers to`, at)
    const verdict = this.#verdictOf(target, value, at)
    if (verdict === "fails" && tells) this.compare(target, { value, at, tells })
    return verdict
  }

  #verdictOf(target: unknown, value: unknown, at: Place | undefined): Verdict {
    const verdicts = this.#verdicts.get(target) ?? new Map<unknown, Verdict>()
    this.#verdicts.set(target, verdicts)
    const known = verdicts.get(value)
    if (known !== undefined) return known
    // Applies to a reference that leads back to itself with the same value.
    verdicts.set(value, "unsure")
    const verdict = this.compare(target, { value, at, tells: false })
    verdicts.set(value, verdict)
    return verdict
  }

  resolve(reference: unknown): unknown {
    if (reference === "#") return this.#whole
    if (typeof reference !== "string" || !reference.startsWith("#/")) return undefined
    if (!this.#targets.has(reference)) this.#targets.set(reference, targetIn(this.#whole, reference))
    return this.#targets.get(reference)
  }

  namesOf(object: JsonObject): ReadonlyArray<string> {
    const names = this.#names.get(object) ?? Object.keys(object)
    this.#names.set(object, names)
    return names
  }

  fail(problem: string, at: Place | undefined, tells: boolean): "fails" {
    if (!tells || this.hasMore) return "fails"
    const field = pathOf(this.#root, at)
    const told = `${field} ${problem}`
    if (this.#told.has(told)) return "fails"
    this.#told.add(told)
    if (this.mistakes.length < maxMistakes) this.mistakes.push({ field, problem })
    else this.hasMore = true
    return "fails"
  }

  leaveOut(what: string, at: Place | undefined): "unsure" {
    if (this.notChecked.size < maxNotes && !this.notChecked.has(what)) this.#note(what, at)
    return "unsure"
  }

  get isSpent(): boolean {
    return this.#steps < 0
  }

  spend(steps: number, at: Place | undefined): boolean {
    if (this.isSpent) return false
    this.#steps -= steps
    if (this.#steps >= 0) return true
    this.#note("the rest, because the comparison takes too long", at)
    return false
  }

  #note(what: string, at: Place | undefined): void {
    this.notChecked.set(what, `${pathOf(this.#root, at)}: ${what}`)
  }
}

const targetIn = (schema: unknown, reference: string): unknown => {
  let found = schema
  for (const token of reference.slice("#/".length).split("/")) {
    const name = unescaped(token)
    if (name === undefined || !isJsonObject(found) || !Object.hasOwn(found, name)) return undefined
    found = found[name]
  }
  return found
}

/** The names in a pointer of a reference are encoded twice: as parts of a pointer, and as those of an address. */
const unescaped = (token: string): string | undefined => {
  try {
    return decodeURIComponent(token).replaceAll("~1", "/").replaceAll("~0", "~")
  } catch {
    return undefined
  }
}

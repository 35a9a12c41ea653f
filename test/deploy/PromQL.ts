/** `metric{label="value"}` in a query. */
export interface Selector {
  readonly metric: string
  readonly matchers: ReadonlyArray<Matcher>
}

export interface Matcher {
  readonly label: string
  readonly operator: string
  readonly value: string
}

/** The labels of `by (…)`, `on (…)` and the like, and what they group. */
export interface Grouping {
  readonly labels: ReadonlyArray<string>
  readonly within: ReadonlyArray<Selector>
}

export interface Query {
  readonly selectors: ReadonlyArray<Selector>
  readonly groupings: ReadonlyArray<Grouping>
}

const token =
  /\s+|(?<text>"(?:[^"\\]|\\.)*")|(?<number>\d[\w.]*)|(?<name>[A-Za-z_:][\w:]*)|(?<mark>=~|!~|!=|==|>=|<=|[-+*/%^<>=(){}[\],])/y

const tokensOf = (text: string): Array<string> => {
  const tokens: Array<string> = []
  token.lastIndex = 0
  while (token.lastIndex < text.length) {
    const at = token.lastIndex
    const found = token.exec(text)
    if (found === null) throw new Error(`this is no PromQL: ${text.slice(at)}`)
    if (found[0].trim() !== "") tokens.push(found[0])
  }
  return tokens
}

const isName = (word: string | undefined): word is string => word !== undefined && /^[A-Za-z_:]/.test(word)

const words = new Set(["and", "or", "unless", "bool", "offset", "atan2"])
const grouping = new Set(["by", "on", "group_left", "group_right"])
const ignoring = new Set(["without", "ignoring"])

/** Finds the metrics and labels of a query. `promtool` checks its grammar. */
export const parse = (text: string): Query => new Parser(tokensOf(text)).query()

class Parser {
  readonly #tokens: ReadonlyArray<string>
  readonly #groupings: Array<Grouping> = []
  #at = 0

  constructor(tokens: ReadonlyArray<string>) {
    this.#tokens = tokens
  }

  query(): Query {
    const selectors = this.#group(undefined)
    return { selectors, groupings: this.#groupings }
  }

  /** Reads to the end of a group in parentheses, or of the query, and returns its selectors. */
  #group(end: ")" | undefined): ReadonlyArray<Selector> {
    const selectors: Array<Selector> = []
    /** Labels that stand before the group that they group. */
    let labelsAhead: ReadonlyArray<string> | undefined
    let lastGroup: ReadonlyArray<Selector> = []
    for (;;) {
      const word = this.#tokens[this.#at++]
      if (word === end) return selectors
      if (word === undefined) throw new Error("a parenthesis is not closed")
      if (word === "(") {
        lastGroup = this.#group(")")
        selectors.push(...lastGroup)
        if (labelsAhead !== undefined) this.#groupings.push({ labels: labelsAhead, within: lastGroup })
        labelsAhead = undefined
      } else if (word === "[") {
        while (this.#tokens[this.#at++] !== "]");
      } else if (ignoring.has(word)) this.#labels()
      else if (grouping.has(word)) {
        const labels = this.#labels()
        // A label of `on` must be on both sides. `group_left` takes labels of one side, so the metrics before it are left.
        if (word === "by" && this.#isAfterGroup()) this.#groupings.push({ labels, within: lastGroup })
        else if (word === "by") labelsAhead = labels
        else if (word === "on") this.#groupings.push({ labels, within: selectors })
      } else if (isName(word) && !words.has(word) && this.#tokens[this.#at] !== "(" && !this.#isBeforeLabels()) {
        selectors.push({ metric: word, matchers: this.#matchers() })
      }
    }
  }

  /** `sum(…) by (label)`, and not `sum by (label) (…)`. */
  #isAfterGroup(): boolean {
    return this.#tokens[this.#at] !== "("
  }

  /** `sum by`: the name is that of an aggregation. */
  #isBeforeLabels(): boolean {
    const next = this.#tokens[this.#at]
    return next === "by" || next === "without"
  }

  /** `group_left` may stand without labels. */
  #labels(): ReadonlyArray<string> {
    const labels: Array<string> = []
    if (this.#tokens[this.#at] !== "(") return labels
    for (let word = this.#tokens[this.#at++]; word !== ")"; word = this.#tokens[this.#at++]) {
      if (word === undefined) throw new Error("a parenthesis is not closed")
      if (isName(word)) labels.push(word)
    }
    return labels
  }

  #matchers(): ReadonlyArray<Matcher> {
    const matchers: Array<Matcher> = []
    if (this.#tokens[this.#at] !== "{") return matchers
    this.#at++
    for (;;) {
      const [label = "", operator = "", value = ""] = this.#tokens.slice(this.#at, this.#at + 3)
      if (label === "}") break
      if (value === "") throw new Error("a brace is not closed")
      matchers.push({ label, operator, value: JSON.parse(value) })
      this.#at += this.#tokens[this.#at + 3] === "," ? 4 : 3
    }
    this.#at++
    return matchers
  }
}

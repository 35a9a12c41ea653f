import { syntaxTree } from "@codemirror/language"
import type { Diagnostic } from "@codemirror/lint"
import type { EditorView } from "@codemirror/view"

/** A value of a document that somebody refused, such as a schema. */
export interface JsonProblem {
  /** The names and places that lead to the value: `["items", 0, "id"]`. The empty path is the whole document. */
  readonly path: ReadonlyArray<string | number>
  readonly message: string
}

type State = EditorView["state"]
type Node = ReturnType<typeof syntaxTree>["topNode"]

/** Marks each problem at its value, or else where the nearest value around it begins. */
export const diagnosticsOf = (state: State, problems: ReadonlyArray<JsonProblem>): ReadonlyArray<Diagnostic> => {
  const root = syntaxTree(state).topNode.firstChild
  if (root === null) return []
  return problems.map(({ message, path }) => {
    return { ...rangeOf(state, root, path), message, severity: "error" }
  })
}

const rangeOf = (
  state: State,
  value: Node,
  [step, ...rest]: JsonProblem["path"]
): { readonly from: number; readonly to: number } => {
  const { from, to } = value
  if (step === undefined) return { from, to }
  const inner = value.name === "Object" ? memberOf(state, value, String(step)) : itemOf(value, Number(step))
  // Were all of it marked, the marks within it could not be seen.
  return inner === null ? { from, to: Math.min(to, from + 1) } : rangeOf(state, inner, rest)
}

const memberOf = (state: State, object: Node, name: string): Node | null =>
  object.getChildren("Property").find((property) => {
    const key = property.getChild("PropertyName")
    return key !== null && nameOf(state.sliceDoc(key.from, key.to)) === name
  })?.lastChild ?? null

const nameOf = (quoted: string): unknown => {
  try {
    return JSON.parse(quoted)
  } catch {
    return undefined
  }
}

const punctuation = new Set(["[", "]", ",", "⚠"])

const itemOf = (array: Node, place: number): Node | null => {
  let count = 0
  for (let item = array.firstChild; item !== null; item = item.nextSibling) {
    if (punctuation.has(item.name)) continue
    if (count === place) return item
    count += 1
  }
  return null
}

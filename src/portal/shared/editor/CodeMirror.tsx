import { json, jsonParseLinter } from "@codemirror/lang-json"
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language"
import { linter, setDiagnostics } from "@codemirror/lint"
import { EditorView } from "@codemirror/view"
import { tags } from "@lezer/highlight"
import { minimalSetup } from "codemirror"
import { useEffect, useEffectEvent, useRef } from "react"
import { nonce } from "../../api/installation.ts"
import styles from "./JsonEditor.module.css"
import { diagnosticsOf, type JsonProblem } from "./problems.ts"

const colors = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--working)" },
  { tag: tags.string, color: "var(--good)" },
  { tag: tags.number, color: "var(--waiting)" },
  { tag: [tags.bool, tags.null], color: "var(--warning)" }
])

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "12px", color: "var(--text)", backgroundColor: "var(--page)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-line": { padding: "0 10px" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "color-mix(in srgb, var(--focus) 28%, transparent)"
  },
  ".cm-tooltip": {
    color: "var(--text)",
    backgroundColor: "var(--raised)",
    border: "1px solid var(--line)",
    borderRadius: "var(--radius)"
  },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  // Chromium keeps a decoration of text that is overwritten, with an inline style that the policy forbids.
  ".cm-lintRange-error": { backgroundImage: "none", borderBottom: "2px dotted var(--bad)" }
})

interface Props {
  readonly labelledBy: string
  readonly describedBy: string
  readonly value: string
  readonly onChange: ((text: string) => void) | undefined
  readonly problems: ReadonlyArray<JsonProblem>
}

const mistakes = jsonParseLinter()

const CodeMirror = ({ describedBy, labelledBy, onChange, problems, value }: Props) => {
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<EditorView>(undefined)
  const report = useEffectEvent((text: string) => onChange?.(text))
  const check = useEffectEvent((view: EditorView) =>
    view.state.doc.length === 0 ? [] : [...mistakes(view), ...diagnosticsOf(view.state, problems)]
  )
  const attributes = useEffectEvent(() => ({
    "aria-labelledby": labelledBy,
    "aria-multiline": "true",
    ...(describedBy !== "" && { "aria-describedby": describedBy })
  }))
  const isFixed = onChange === undefined
  const first = useEffectEvent(() => value)

  useEffect(() => {
    if (host.current === null) return
    const view = new EditorView({
      parent: host.current,
      doc: first(),
      extensions: [
        minimalSetup,
        json(),
        syntaxHighlighting(colors),
        look,
        EditorView.lineWrapping,
        EditorView.editable.of(!isFixed),
        EditorView.cspNonce.of(nonce ?? ""),
        EditorView.contentAttributes.of(() => ({ ...attributes(), ...(isFixed && { tabindex: "0" }) })),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) report(state.doc.toString())
        }),
        linter((current) => check(current), { delay: 300 })
      ]
    })
    editor.current = view
    return () => view.destroy()
  }, [isFixed])

  useEffect(() => {
    const view = editor.current
    if (view === undefined || view.state.doc.toString() === value) return
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } })
  }, [value])

  // biome-ignore lint/correctness/useExhaustiveDependencies: the marks are drawn again for other problems
  useEffect(() => {
    const view = editor.current
    if (view !== undefined) view.dispatch(setDiagnostics(view.state, check(view)))
  }, [problems])

  return <div ref={host} className={styles.host} />
}

export default CodeMirror

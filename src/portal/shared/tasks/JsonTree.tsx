import { Button } from "@mantine/core"
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react"
import { useMemo, useState } from "react"
import type { JsonProblem } from "../editor/problems.ts"
import { ForeignText, VisibleMarks } from "../foreign/ForeignText.tsx"
import { CopyButton } from "../words/CopyButton.tsx"
import { countedText, countText } from "../words/format.ts"
import { StatusWord } from "../words/StatusWord.tsx"
import { HiddenNote } from "./HiddenNote.tsx"
import { withoutSecrets } from "./hidden.ts"
import styles from "./JsonTree.module.css"
import { type JsonMarks, marksOf, pathTo, rootPath } from "./jsonMarks.ts"

interface Props {
  readonly value: unknown
  /** The name of the value, for readers of the screen and for the button that copies it. */
  readonly label: string
  /** Marked at their values, such as what does not fit a schema. */
  readonly problems?: ReadonlyArray<JsonProblem>
}

/** Objects and arrays to this depth are open at first, unless they are long. */
const openDepth = 2
const longAt = 20
/** So many entries of an object, and characters of a text, are drawn at once. */
const mostEntries = 100
const mostCharacters = 1_000

/**
 * JSON whose objects and arrays open and close. What is closed is not drawn, and what is long is drawn in parts. Texts
 * that are secrets by their names are neither drawn nor copied until a person asks for them.
 */
export const JsonTree = ({ label, problems = none, value }: Props) => {
  const [isWhole, setWhole] = useState(false)
  const hidden = useMemo(() => withoutSecrets(value), [value])
  const shown = isWhole ? value : hidden.value
  const marks = useMemo(() => marksOf(value, problems), [value, problems])
  return (
    <figure className={styles.tree} aria-label={label}>
      <Node name={undefined} value={shown} depth={0} path={rootPath} marks={marks} />
      <HiddenNote hidden={hidden} isShown={isWhole} onShow={setWhole} />
      <CopyButton text={JSON.stringify(shown, null, 2) ?? "null"} label={`Copy: ${label}`} />
    </figure>
  )
}

const none: ReadonlyArray<JsonProblem> = []

interface NodeProps {
  readonly name: string | undefined
  readonly value: unknown
  readonly depth: number
  readonly path: string
  readonly marks: JsonMarks
}

const Node = ({ value, ...props }: NodeProps) =>
  typeof value === "object" && value !== null ? (
    <Branch value={value} {...props} />
  ) : (
    <span className={styles.line}>
      <Name of={props.name} />
      <Leaf value={value} />
      <Marks of={props.marks.at(props.path)} />
    </span>
  )

const Marks = ({ of: messages }: { readonly of: ReadonlyArray<string> }) =>
  messages.map((message) => (
    <span key={message} className={styles.mark}>
      <StatusWord meaning="bad">
        <ForeignText>{message}</ForeignText>
      </StatusWord>
    </span>
  ))

const Branch = ({ depth, marks, name, path, value }: NodeProps & { readonly value: object }) => {
  const entries = Object.entries(value)
  const [isOpen, setOpen] = useState((depth < openDepth && entries.length <= longAt) || marks.isAround(path))
  const [shown, setShown] = useState(mostEntries)
  const isArray = Array.isArray(value)
  const summary = isArray ? countedText(entries.length, "item") : countedText(entries.length, "field")
  const [open, close] = isArray ? ["[", "]"] : ["{", "}"]
  if (entries.length === 0)
    return (
      <span className={styles.line}>
        <Name of={name} />
        {open}
        {close}
        <Marks of={marks.at(path)} />
      </span>
    )
  return (
    <>
      <button
        type="button"
        className={styles.toggle}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        aria-label={`${name ?? (isArray ? "Array" : "Object")}, ${summary}`}
      >
        {isOpen ? <IconChevronDown size={12} /> : <IconChevronRight size={12} />}
        <Name of={name} />
        {open}
        {!isOpen && (
          <>
            <span className={styles.summary}>{summary}</span>
            {close}
          </>
        )}
      </button>
      <Marks of={marks.at(path)} />
      {isOpen && (
        <>
          <ul className={styles.entries}>
            {entries.slice(0, shown).map(([key, entry]) => (
              <li key={key}>
                <Node name={key} value={entry} depth={depth + 1} path={pathTo(path, key)} marks={marks} />
              </li>
            ))}
          </ul>
          {entries.length > shown && (
            <Button variant="subtle" size="compact-sm" onClick={() => setShown(shown + mostEntries)}>
              {countText(Math.min(mostEntries, entries.length - shown))} more of {countText(entries.length)}
            </Button>
          )}
          <span className={styles.line}>{close}</span>
        </>
      )}
    </>
  )
}

const Name = ({ of: name }: { readonly of: string | undefined }) =>
  name !== undefined && (
    <span className={styles.name}>
      <bdi>
        <VisibleMarks text={name} />
      </bdi>
      :{" "}
    </span>
  )

const Leaf = ({ value }: { readonly value: unknown }) => {
  const [isWhole, setWhole] = useState(false)
  const text = JSON.stringify(value) ?? "null"
  const isCut = text.length > mostCharacters && !isWhole
  return (
    <>
      <bdi className={styles.value} data-kind={value === null ? "null" : typeof value}>
        <VisibleMarks text={isCut ? `${text.slice(0, mostCharacters)}…` : text} />
      </bdi>
      {isCut && (
        <Button variant="subtle" size="compact-sm" onClick={() => setWhole(true)}>
          All {countText(text.length)} characters
        </Button>
      )}
    </>
  )
}

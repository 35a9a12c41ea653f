import { Button } from "@mantine/core"
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react"
import { useMemo, useState } from "react"
import { ForeignText, VisibleMarks } from "../foreign/ForeignText.tsx"
import { CopyButton } from "../words/CopyButton.tsx"
import { countedText, countText } from "../words/format.ts"
import { withoutSecrets } from "./hidden.ts"
import styles from "./JsonTree.module.css"

interface Props {
  readonly value: unknown
  /** The name of the value, for readers of the screen and for the button that copies it. */
  readonly label: string
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
export const JsonTree = ({ label, value }: Props) => {
  const [isWhole, setWhole] = useState(false)
  const hidden = useMemo(() => withoutSecrets(value), [value])
  const shown = isWhole ? value : hidden.value
  return (
    <figure className={styles.tree} aria-label={label}>
      <Node name={undefined} value={shown} depth={0} />
      {hidden.count > 0 && (
        <p className={styles.hidden}>
          {isWhole ? "Shown" : "Hidden"} because of {hidden.names.length === 1 ? "its name" : "their names"}:{" "}
          <ForeignText>{hidden.names.slice(0, mostNames).join(", ")}</ForeignText>.{" "}
          <Button variant="subtle" size="compact-sm" onClick={() => setWhole(!isWhole)}>
            {isWhole ? "Hide" : `Show ${countedText(hidden.count, "value")}`}
          </Button>
        </p>
      )}
      <CopyButton text={JSON.stringify(shown, null, 2) ?? "null"} label={`Copy: ${label}`} />
    </figure>
  )
}

const mostNames = 5

interface NodeProps {
  readonly name: string | undefined
  readonly value: unknown
  readonly depth: number
}

const Node = ({ depth, name, value }: NodeProps) =>
  typeof value === "object" && value !== null ? (
    <Branch name={name} value={value} depth={depth} />
  ) : (
    <span className={styles.line}>
      <Name of={name} />
      <Leaf value={value} />
    </span>
  )

const Branch = ({ depth, name, value }: NodeProps & { readonly value: object }) => {
  const entries = Object.entries(value)
  const [isOpen, setOpen] = useState(depth < openDepth && entries.length <= longAt)
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
      {isOpen && (
        <>
          <ul className={styles.entries}>
            {entries.slice(0, shown).map(([key, entry]) => (
              <li key={key}>
                <Node name={key} value={entry} depth={depth + 1} />
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

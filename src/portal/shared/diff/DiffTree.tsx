import { Button } from "@mantine/core"
import { useMemo, useState } from "react"
import { ForeignText } from "../foreign/ForeignText.tsx"
import styles from "./DiffTree.module.css"
import { type DiffLine, linesOf } from "./delta.ts"

interface Props {
  readonly before: unknown
  readonly after: unknown
  readonly label: string
}

const mostLines = 200

const DiffTree = ({ after, before, label }: Props) => {
  const lines = useMemo(() => linesOf(before, after), [before, after])
  const [isWhole, setWhole] = useState(false)
  if (lines.length === 0) return <p className={styles.none}>Nothing differs.</p>
  return (
    <>
      <ul className={styles.tree} aria-label={label}>
        {(isWhole ? lines : lines.slice(0, mostLines)).map((line) => (
          <Line key={`${line.kind} ${line.path.join("\u0000")}`} line={line} />
        ))}
      </ul>
      {!isWhole && lines.length > mostLines && (
        <Button variant="default" onClick={() => setWhole(true)}>
          Show all {lines.length} differences
        </Button>
      )}
    </>
  )
}

const marks = { added: "+", removed: "−", changed: "~" } as const

const Line = ({ line: { after, before, kind, path } }: { readonly line: DiffLine }) => (
  <li className={styles.line} data-kind={kind}>
    <span className={styles.mark} aria-hidden="true">
      {marks[kind]}
    </span>
    <span className={styles.path}>
      {path.length === 0 ? <em>all of it</em> : <Path names={path} />}
      <span className={styles.kind}> {kind}</span>
    </span>
    <span className={styles.values}>
      {kind !== "added" && (
        <del>
          <ForeignText>{textOf(before)}</ForeignText>
        </del>
      )}
      {kind === "changed" && <span aria-hidden="true"> → </span>}
      {kind !== "removed" && (
        <ins>
          <ForeignText>{textOf(after)}</ForeignText>
        </ins>
      )}
    </span>
  </li>
)

const Path = ({ names }: { readonly names: ReadonlyArray<string> }) => (
  <code>
    {names.map((name, depth) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the depth is what tells equal names apart
      <span key={depth}>
        {depth > 0 && <span className={styles.dot}>.</span>}
        <ForeignText>{name}</ForeignText>
      </span>
    ))}
  </code>
)

const textOf = (value: unknown): string =>
  value === undefined
    ? ""
    : typeof value === "object" && value !== null
      ? JSON.stringify(value, null, 1)
      : JSON.stringify(value)

export default DiffTree

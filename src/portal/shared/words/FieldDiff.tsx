import { ForeignText } from "../foreign/ForeignText.tsx"
import styles from "./FieldDiff.module.css"

interface Props {
  readonly before: Readonly<Record<string, unknown>>
  readonly after: Readonly<Record<string, unknown>>
  /** The sentence that is shown if no field differs. */
  readonly absent?: string
}

const textOf = (value: unknown): string =>
  value === undefined || value === null ? "not set" : typeof value === "string" ? value : JSON.stringify(value)

/** The fields that differ, by the API's own names: `rpm_limit 60 → 30`. */
export const FieldDiff = ({ absent = "Nothing changes.", after, before }: Props) => {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => textOf(before[name]) !== textOf(after[name])
  )
  if (names.length === 0) return <p>{absent}</p>
  return (
    <ul className={styles.diff}>
      {names.map((name) => (
        <li key={name}>
          <code>{name}</code>{" "}
          <del>
            <ForeignText>{textOf(before[name])}</ForeignText>
          </del>{" "}
          <span aria-hidden="true">→</span>{" "}
          <ins>
            <ForeignText>{textOf(after[name])}</ForeignText>
          </ins>
        </li>
      ))}
    </ul>
  )
}

import { ForeignText } from "../foreign/ForeignText.tsx"
import styles from "./FieldDiff.module.css"

interface Props {
  readonly before: Readonly<Record<string, unknown>>
  readonly after: Readonly<Record<string, unknown>>
  /** The sentence that is shown if no field differs. */
  readonly absent?: string
  /** The fields are members of JSON, where `"1"` is not `1`, and `null` is a value. */
  readonly isJson?: boolean
}

/** In settings, `null` means that nothing is set. */
const textOf = (value: unknown): string =>
  value === undefined || value === null ? "not set" : typeof value === "string" ? value : JSON.stringify(value)

const jsonTextOf = (value: unknown): string => (value === undefined ? "absent" : JSON.stringify(value))

/** The fields that differ, by the API's own names: `rpm_limit 60 → 30`. */
export const FieldDiff = ({ absent = "Nothing changes.", after, before, isJson = false }: Props) => {
  const written = isJson ? jsonTextOf : textOf
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => written(before[name]) !== written(after[name])
  )
  if (names.length === 0) return <p>{absent}</p>
  return (
    <ul className={styles.diff}>
      {names.map((name) => (
        <li key={name}>
          <code>{name}</code>{" "}
          <del>
            <ForeignText>{written(before[name])}</ForeignText>
          </del>{" "}
          <span aria-hidden="true">→</span>{" "}
          <ins>
            <ForeignText>{written(after[name])}</ForeignText>
          </ins>
        </li>
      ))}
    </ul>
  )
}

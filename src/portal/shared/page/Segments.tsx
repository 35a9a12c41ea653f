import { useId } from "react"
import { useChosen } from "../../address/useChosen.ts"
import styles from "./Segments.module.css"

interface Props<Value extends string> {
  readonly "aria-label": string
  readonly data: ReadonlyArray<Value | { readonly value: Value; readonly label: string }>
  readonly value: string
  readonly onChange: (value: Value) => void
}

/**
 * One of a few, side by side. The control of the library measures the page to move its mark: each of them made the first
 * page come later.
 */
export const Segments = <Value extends string>({ "aria-label": label, data, onChange, value }: Props<Value>) => {
  const name = useId()
  const { choose, chosen } = useChosen(value, onChange)
  return (
    <div className={styles.segments} role="radiogroup" aria-label={label}>
      {data
        .map((one) => (typeof one === "string" ? { value: one, label: one } : one))
        .map((one) => (
          <label key={one.value} className={styles.segment}>
            <input
              type="radio"
              name={name}
              value={one.value}
              checked={one.value === chosen}
              onChange={() => choose(one.value)}
            />
            <span>{one.label}</span>
          </label>
        ))}
    </div>
  )
}

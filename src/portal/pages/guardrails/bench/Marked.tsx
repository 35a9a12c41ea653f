import { isChanged, type Segment } from "./align.ts"
import styles from "./Bench.module.css"

interface Props {
  readonly label: string
  readonly segments: ReadonlyArray<Segment>
  readonly side: "before" | "after"
}

/** A text with what a guardrail changed marked in it. */
export const Marked = ({ label, segments, side }: Props) => (
  <figure className={styles.figure}>
    <figcaption>{label}</figcaption>
    {/* biome-ignore lint/a11y/useSemanticElements: the marks in the text have no place in a field */}
    <div
      className={styles.text}
      dir="auto"
      tabIndex={0}
      role="textbox"
      aria-readonly="true"
      aria-multiline="true"
      aria-label={label}
    >
      {segments.map((segment, place) => {
        const text = segment[side]
        if (text === "") return null
        return isChanged(segment) ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the pieces have no other identity
          <mark key={place} className={styles.mark} data-side={side}>
            {text}
          </mark>
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: the pieces have no other identity
          <span key={place}>{text}</span>
        )
      })}
    </div>
  </figure>
)

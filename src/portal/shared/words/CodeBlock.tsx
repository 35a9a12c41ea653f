import { VisibleMarks } from "../foreign/ForeignText.tsx"
import styles from "./CodeBlock.module.css"
import { CopyButton } from "./CopyButton.tsx"

interface Props {
  readonly text: string
  /** What it is, for readers of the screen: "Command", "Body". */
  readonly label: string
}

/** Text to copy: commands, snippets, bodies. */
export const CodeBlock = ({ label, text }: Props) => (
  <figure className={styles.block} data-word={!/\s/.test(text) || undefined}>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached with the keyboard */}
    <section tabIndex={0} aria-label={label}>
      <pre>
        <VisibleMarks text={text} />
      </pre>
    </section>
    <CopyButton text={text} label={`Copy: ${label}`} />
  </figure>
)

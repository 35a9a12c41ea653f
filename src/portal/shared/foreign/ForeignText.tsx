import { Children, type ComponentProps } from "react"
import styles from "./ForeignText.module.css"
import { marksOf, shownText } from "./marks.ts"

/**
 * Text that somebody else wrote, such as a name: whatever its direction, it does not reach into the text around it, and
 * marks that would turn or hide a part of it are shown as what they are.
 */
export const ForeignText = ({ children, title, ...props }: ComponentProps<"bdi">) => (
  <bdi {...props} {...(title !== undefined && { title: shownText(title) })}>
    {Children.map(children, (child) => (typeof child === "string" ? <VisibleMarks text={child} /> : child))}
  </bdi>
)

/** The text, with the marks that nobody would see. */
export const VisibleMarks = ({ text }: { readonly text: string }) =>
  marksOf(text).map((part, place) =>
    part.isMark ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: a part of a text has nothing else
      <span key={place} className={styles.mark}>
        {part.text}
      </span>
    ) : (
      part.text
    )
  )

import { Link } from "@tanstack/react-router"
import type { SentencePart } from "../../api/TaskTypes.ts"
import { ForeignId } from "../foreign/ForeignId.tsx"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { shownText } from "../foreign/marks.ts"
import { When } from "../words/When.tsx"
import styles from "./ExplainedSentence.module.css"

/** Shows the server's explanation of a task: times are written as everywhere else, ids are short and have a link. */
export const ExplainedSentence = ({ parts }: { readonly parts: ReadonlyArray<SentencePart> }) =>
  // biome-ignore lint/suspicious/noArrayIndexKey: a part of a sentence has nothing else
  parts.map((part, place) => <Part key={place} part={part} />)

const Part = ({ part }: { readonly part: SentencePart }) => {
  const { text } = part
  switch (part.kind) {
    case "text":
      return text
    case "quoted":
      return <ForeignText>{text}</ForeignText>
    case "queue":
      return (
        <Link to="/tasks/board">
          <ForeignText>{text}</ForeignText>
        </Link>
      )
    case "task":
      return (
        <Link to="/tasks/$taskId" params={{ taskId: text }} className={styles.id} aria-label={shownText(text)}>
          <ForeignId id={text} />
        </Link>
      )
    case "dead_letter":
      return (
        <Link to="/dead-letters/$dlqId" params={{ dlqId: text }} className={styles.id} aria-label={shownText(text)}>
          <ForeignId id={text} />
        </Link>
      )
    case "at":
      return <When at={part.time} />
    case "since":
    case "until":
      return (
        <>
          {part.kind} <When at={part.time} />
        </>
      )
  }
}

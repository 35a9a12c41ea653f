import { Button, Group, Modal, Progress, Stack } from "@mantine/core"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { type Meaning, StatusWord } from "../../../shared/words/StatusWord.tsx"
import styles from "./Bulk.module.css"

export interface Result {
  readonly id: string
  readonly meaning: Meaning
  readonly word: string
  readonly detail: string
}

interface Props {
  readonly title: string
  readonly total: number
  readonly results: ReadonlyArray<Result>
  readonly isEnded: boolean
  /** Begins with no other one. Those that are under way are finished. */
  readonly onStop: () => void
  readonly onClose: () => void
}

/** What the server has answered for each of many, as the answers come. */
export const BulkResults = ({ isEnded, onClose, onStop, results, title, total }: Props) => {
  const words = Map.groupBy(results, ({ word }) => word)
  const sum = [...words].map(([word, { length }]) => `${length} ${word}`).join(", ")
  return (
    <Modal opened onClose={isEnded ? onClose : () => {}} withCloseButton={isEnded} title={title} size="lg">
      <Stack gap="sm">
        <Progress value={(results.length / total) * 100} aria-label="Progress" />
        <p aria-live="polite">
          {results.length} of {total}
          {sum !== "" && `: ${sum}`}
        </p>
        <ul className={styles.results}>
          {results.map(({ detail, id, meaning, word }) => (
            <li key={id}>
              <StatusWord meaning={meaning}>{word}</StatusWord>
              <ForeignText>{id}</ForeignText>
              <ForeignText>{detail}</ForeignText>
            </li>
          ))}
        </ul>
        <Group justify="end">
          {isEnded ? (
            <Button onClick={onClose}>Done</Button>
          ) : (
            <Button variant="default" onClick={onStop}>
              Stop
            </Button>
          )}
        </Group>
      </Stack>
    </Modal>
  )
}

import { Button, Group } from "@mantine/core"
import { useState } from "react"
import type { DeadLetterSummary } from "../../../api/TaskTypes.ts"
import { ReplayPlanDialog } from "../../../shared/tasks/ReplayPlanDialog.tsx"
import { countedText } from "../../../shared/words/format.ts"
import { ArchiveDialog } from "../archive/ArchiveDialog.tsx"
import { AllLetters, AllLettersCount } from "./AllLetters.tsx"
import type { LetterFilter } from "./letterFilter.ts"

interface Props {
  readonly letters: ReadonlyArray<DeadLetterSummary>
  /** All that match are meant, and not only the letters that are shown. */
  readonly matching?: LetterFilter | undefined
  /** Selects all that match. Left out where the letters are all of them. */
  readonly onAll?: (() => void) | undefined
  readonly onDone: () => void
}

/** Offers the operations on the selected letters, or on all that match. */
export const LetterBulk = ({ letters, matching, onAll, onDone }: Props) => {
  const [asked, setAsked] = useState<"replay" | "archive">()
  const ids = letters.map(({ dlq_id }) => dlq_id)
  const selection = matching === undefined ? { ids } : { filter: matching }
  return (
    <Group gap={6} role="toolbar" aria-label="Selected letters">
      {matching === undefined ? <strong>{ids.length} selected</strong> : <AllLettersCount filter={matching} />}
      {matching === undefined && onAll !== undefined && (
        <Button variant="subtle" onClick={onAll}>
          Select all that match
        </Button>
      )}
      <Button variant="default" onClick={() => setAsked("replay")}>
        Replay in steps
      </Button>
      <Button variant="default" onClick={() => setAsked("archive")}>
        Archive
      </Button>
      <Button variant="subtle" color="gray" onClick={onDone}>
        Select none
      </Button>
      {asked === "replay" && (
        <ReplayPlanDialog selection={selection} onClose={() => setAsked(undefined)}>
          {matching === undefined ? (
            <p>
              {countedText(ids.length, "letter is", "letters are")} replayed in this order. Those that are not open any
              more are skipped.
            </p>
          ) : (
            <AllLetters filter={matching} />
          )}
        </ReplayPlanDialog>
      )}
      {asked === "archive" && (
        <ArchiveDialog
          selection={selection}
          onClose={() => setAsked(undefined)}
          onDone={() => {
            setAsked(undefined)
            onDone()
          }}
        >
          {matching !== undefined && <AllLetters filter={matching} />}
        </ArchiveDialog>
      )}
    </Group>
  )
}

import { Button, Group } from "@mantine/core"
import { useState } from "react"
import type { DeadLetterSummary } from "../../../api/TaskTypes.ts"
import { ReplayPlanDialog } from "../../../shared/tasks/ReplayPlanDialog.tsx"
import { countedText } from "../../../shared/words/format.ts"
import { ArchiveDialog } from "../archive/ArchiveDialog.tsx"

interface Props {
  readonly letters: ReadonlyArray<DeadLetterSummary>
  readonly onDone: () => void
}

/** What can be done with the selected letters. */
export const LetterBulk = ({ letters, onDone }: Props) => {
  const [asked, setAsked] = useState<"replay" | "archive">()
  const ids = letters.map(({ dlq_id }) => dlq_id)
  return (
    <Group gap={6}>
      <strong>{ids.length} selected</strong>
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
        <ReplayPlanDialog selection={{ ids }} onClose={() => setAsked(undefined)}>
          <p>
            {countedText(ids.length, "letter is", "letters are")} replayed in this order. Those that are not open any
            more are skipped.
          </p>
        </ReplayPlanDialog>
      )}
      {asked === "archive" && (
        <ArchiveDialog
          selection={{ ids }}
          onClose={() => setAsked(undefined)}
          onDone={() => {
            setAsked(undefined)
            onDone()
          }}
        />
      )}
    </Group>
  )
}

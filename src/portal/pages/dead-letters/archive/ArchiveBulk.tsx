import { Button, Group } from "@mantine/core"
import { useState } from "react"
import { useTasksWrite } from "../../../api/queries.ts"
import type { DeadLetterSummary, RepairedMany } from "../../../api/TaskTypes.ts"
import { tellFailure, useTell } from "../../../shared/change/useTell.tsx"
import { countedText } from "../../../shared/words/format.ts"
import { NotTakenBack } from "./NotTakenBack.tsx"

interface Props {
  readonly letters: ReadonlyArray<DeadLetterSummary>
  readonly onSelect: (ids: ReadonlySet<string>) => void
}

interface Answered {
  readonly letters: ReadonlyArray<DeadLetterSummary>
  readonly repaired: RepairedMany
}

/** Takes the selected letters back together. Those that stay in the archive stay selected. */
export const ArchiveBulk = ({ letters, onSelect }: Props) => {
  const [answered, setAnswered] = useState<Answered>()
  const tell = useTell()
  const unarchive = useTasksWrite<RepairedMany>()
  const ids = letters.map(({ dlq_id }) => dlq_id)
  const takeBack = () =>
    unarchive.mutate(
      { path: "/dlq/messages/unarchive", body: { ids } },
      {
        onSuccess: (repaired) => {
          const { changed } = repaired
          if (changed > 0)
            tell({
              done: `${countedText(changed, "letter has the state again that it", "letters have the state again that they")} had.`,
              audit: { type: "tasks" }
            })
          if (changed < ids.length) setAnswered({ letters, repaired })
          const back = new Set(repaired.ids)
          onSelect(new Set(ids.filter((id) => !back.has(id))))
        },
        onError: tellFailure
      }
    )
  return (
    <>
      {letters.length > 0 && (
        <Group gap={6} role="toolbar" aria-label="Selected letters">
          <strong>{letters.length} selected</strong>
          <Button variant="default" loading={unarchive.isPending} onClick={takeBack}>
            Take them back
          </Button>
          <Button variant="subtle" color="gray" onClick={() => onSelect(new Set())}>
            Select none
          </Button>
        </Group>
      )}
      {answered !== undefined && <NotTakenBack {...answered} onClose={() => setAnswered(undefined)} />}
    </>
  )
}

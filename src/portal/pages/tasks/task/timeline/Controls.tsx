import { ActionIcon, Button, Group, Tooltip } from "@mantine/core"
import { IconArrowLeft, IconArrowRight, IconMinus, IconPlus } from "@tabler/icons-react"
import { countText, durationText } from "../../../../shared/words/format.ts"
import type { Attempt } from "../../attempts/attempts.ts"
import { attemptsText } from "../../attempts/outcomes.ts"
import type { Span } from "./rows.ts"
import styles from "./Timeline.module.css"
import type { Window } from "./useWindow.ts"

interface Props {
  readonly window: Window
  readonly failures: number
  readonly attempts: ReadonlyArray<Attempt>
  /** From the first start to the last end. */
  readonly whole: Span
  readonly onFailure: () => void
}

/** The same as the keys, for thumbs. */
export const Controls = ({ attempts, failures, onFailure, whole, window }: Props) => {
  const { isWhole, pan, reset, span, zoom } = window
  const shown = isWhole ? whole : span
  return (
    <div className={styles.controls}>
      <span>
        {attemptsText(attempts)}, {durationText(shown.to - shown.from)}
        {isWhole ? " in all" : " shown"}
      </span>
      <Group gap={4}>
        <Tool
          label="Earlier · Shift ←"
          onClick={() => pan(-0.4)}
          icon={<IconArrowLeft size={15} />}
          isDisabled={isWhole}
        />
        <Tool label="Zoom out · −" onClick={() => zoom(2)} icon={<IconMinus size={15} />} isDisabled={isWhole} />
        <Tool label="Zoom in · +" onClick={() => zoom(0.5)} icon={<IconPlus size={15} />} isDisabled={false} />
        <Tool
          label="Later · Shift →"
          onClick={() => pan(0.4)}
          icon={<IconArrowRight size={15} />}
          isDisabled={isWhole}
        />
        <Button variant="default" onClick={reset} disabled={isWhole}>
          All
        </Button>
        <Tooltip label="f">
          <Button variant="default" onClick={onFailure} disabled={failures === 0}>
            Next failure ({countText(failures)})
          </Button>
        </Tooltip>
      </Group>
    </div>
  )
}

interface ToolProps {
  readonly label: string
  readonly icon: React.ReactNode
  readonly isDisabled: boolean
  readonly onClick: () => void
}

const Tool = ({ icon, isDisabled, label, onClick }: ToolProps) => (
  <Tooltip label={label}>
    <ActionIcon variant="default" size={30} aria-label={label} disabled={isDisabled} onClick={onClick}>
      {icon}
    </ActionIcon>
  </Tooltip>
)

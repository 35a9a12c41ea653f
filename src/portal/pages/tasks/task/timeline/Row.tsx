import { UnstyledButton } from "@mantine/core"
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react"
import { Link } from "@tanstack/react-router"
import { durationText } from "../../../../shared/words/format.ts"
import { outcomes } from "../../attempts/outcomes.ts"
import type { Bar } from "./bars.ts"
import type { TimelineRow } from "./rows.ts"
import styles from "./Timeline.module.css"

interface Props {
  readonly row: TimelineRow
  readonly bars: ReadonlyArray<Bar>
  readonly top: number
  readonly labels: number
  readonly selection: string | undefined
  readonly onSelect: (id: string | undefined) => void
  readonly onToggle: () => void
}

export const Row = ({ bars, labels, onSelect, onToggle, row, selection, top }: Props) => (
  <div className={styles.row} style={{ transform: `translateY(${top}px)` }} data-kind={row.kind}>
    <div className={styles.label} style={{ width: labels }}>
      {row.kind === "group" ? (
        <UnstyledButton className={styles.group} onClick={onToggle} aria-expanded={row.isOpen}>
          {row.isOpen ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}
          <bdi>{row.label}</bdi>
          <span className={styles.detail}>
            {row.tasks.toLocaleString("en-US")}: {row.detail}
          </span>
        </UnstyledButton>
      ) : (
        <Link to="/tasks/$taskId" params={{ taskId: row.id }} title={row.label}>
          <bdi>{row.label}</bdi>
        </Link>
      )}
    </div>
    <div className={styles.track}>
      {bars.map((bar) => (
        <BarButton key={bar.id} bar={bar} isSelected={isPartOf(bar, selection)} onSelect={onSelect} />
      ))}
    </div>
  </div>
)

const isPartOf = ({ attempt, id }: Bar, selection: string | undefined): boolean =>
  selection !== undefined && (id === selection || (id === attempt.id && attempt.parts.includes(selection)))

/** Wide enough for an icon. */
const iconWidth = 18

interface BarProps {
  readonly bar: Bar
  readonly isSelected: boolean
  readonly onSelect: (id: string | undefined) => void
}

const BarButton = ({ bar: { attempt, count, id, kind, left, outcome, width }, isSelected, onSelect }: BarProps) => {
  const { icon: Icon, meaning, words } = outcomes[outcome]
  const length = attempt.end === undefined ? "" : `, ${durationText(attempt.end - attempt.start)}`
  const label =
    kind === "wait"
      ? `waits for its retry after ${attempt.label}`
      : count > 1
        ? `${count} attempts, the worst of them ${words}`
        : `${attempt.label}: ${words}${length}`
  return (
    <button
      type="button"
      className={styles.bar}
      data-kind={kind}
      data-meaning={kind === "wait" ? "waiting" : meaning}
      data-selected={isSelected || undefined}
      data-attempt={attempt.id}
      style={{ left, width }}
      aria-label={label}
      title={label}
      onClick={() => onSelect(id)}
    >
      {kind === "attempt" && width >= iconWidth && (count > 1 ? <span>{count}</span> : <Icon size={13} stroke={2.4} />)}
    </button>
  )
}

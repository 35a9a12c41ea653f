import { UnstyledButton } from "@mantine/core"
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react"
import { Link } from "@tanstack/react-router"
import { ForeignText } from "../../../../shared/foreign/ForeignText.tsx"
import { countText, durationText } from "../../../../shared/words/format.ts"
import { attemptsText, outcomes, outcomesText } from "../../attempts/outcomes.ts"
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
          <ForeignText>{row.label}</ForeignText>
          <span className={styles.detail}>
            {countText(row.tasks)}: {row.detail}
          </span>
        </UnstyledButton>
      ) : (
        <Link to="/tasks/$taskId" params={{ taskId: row.id }}>
          <ForeignText title={row.label}>{row.label}</ForeignText>
        </Link>
      )}
    </div>
    <Track row={row} bars={bars} selection={selection} onSelect={onSelect} />
  </div>
)

const isPartOf = ({ attempt, id }: Bar, selection: string | undefined): boolean =>
  selection !== undefined && (id === selection || (id === attempt.id && attempt.parts.includes(selection)))

/** Wide enough for an icon. */
const iconWidth = 18

type TrackProps = Pick<Props, "row" | "bars" | "selection" | "onSelect">

/** The bars are too small to be hit: a click takes the nearest one, and the arrows go from one to the next. */
const Track = ({ bars, onSelect, row, selection }: TrackProps) => {
  const place = bars.findIndex((bar) => isPartOf(bar, selection))
  const take = (next: number) => onSelect(bars[Math.max(0, Math.min(bars.length - 1, next))]?.id)
  return (
    <button
      type="button"
      className={styles.track}
      disabled={bars.length === 0}
      aria-label={`${row.label}: ${summaryOf(row)}`}
      onClick={(event) => {
        // Enter and Space have no place
        if (event.detail === 0) return take(place + 1)
        const at = event.clientX - event.currentTarget.getBoundingClientRect().left
        const distance = ({ left, width }: Bar) => Math.max(0, left - at, at - left - width)
        const nearest = bars.toSorted((one, other) => distance(one) - distance(other))[0]
        onSelect(nearest?.id)
      }}
      onKeyDown={(event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
        if (step === undefined || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return
        event.preventDefault()
        event.stopPropagation()
        take(place === -1 ? 0 : place + step)
      }}
    >
      {bars.map((bar) => (
        <BarMark key={bar.id} bar={bar} isSelected={isPartOf(bar, selection)} />
      ))}
    </button>
  )
}

const summaryOf = ({ attempts, detail }: TimelineRow): string =>
  detail !== "" ? detail : `${attemptsText(attempts)}: ${outcomesText(attempts)}`

interface BarProps {
  readonly bar: Bar
  readonly isSelected: boolean
}

const BarMark = ({ bar: { attempt, count, kind, left, outcome, width }, isSelected }: BarProps) => {
  const { icon: Icon, meaning, words } = outcomes[outcome]
  const length = attempt.end === undefined ? "" : `, ${durationText(attempt.end - attempt.start)}`
  const title =
    kind === "wait"
      ? `waits for its retry after ${attempt.label}`
      : count > 1
        ? `${count} attempts: ${words}`
        : `${attempt.label}: ${words}${length}`
  return (
    <span
      className={styles.bar}
      data-kind={kind}
      data-meaning={kind === "wait" ? "waiting" : meaning}
      data-selected={isSelected || undefined}
      style={{ left, width }}
      title={title}
    >
      {kind === "attempt" && width >= iconWidth && (count > 1 ? count : <Icon size={13} stroke={2.4} />)}
    </span>
  )
}

import { UnstyledButton } from "@mantine/core"
import { useMemo } from "react"
import type { ExecutionGraph } from "../../../../api/TaskTypes.ts"
import { ForeignText } from "../../../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../../../shared/page/Empty.tsx"
import { countText, durationText } from "../../../../shared/words/format.ts"
import { StatusWord } from "../../../../shared/words/StatusWord.tsx"
import type { Attempt } from "../../attempts/attempts.ts"
import styles from "./Sequence.module.css"
import { stepsOf } from "./steps.ts"

interface Props {
  readonly graph: ExecutionGraph
  readonly attempts: ReadonlyArray<Attempt>
  readonly selection: string | undefined
  readonly onSelect: (id: string | undefined) => void
}

/** Steps beyond are in the raw data. */
const mostSteps = 1_000

/** Who did what, one after the other: a lifeline for each worker. */
export const SequenceTab = ({ attempts, graph, onSelect, selection }: Props) => {
  const steps = useMemo(() => stepsOf(graph, attempts), [graph, attempts])
  const lifelines = [...new Set(steps.map(({ lifeline }) => lifeline))]
  if (steps.length === 0) return <Empty>No step of this task is known.</Empty>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached with the keyboard
    <div className={styles.scroller} tabIndex={0}>
      <table className={styles.sequence} aria-label="Steps of the task in their order">
        <thead>
          <tr>
            <th scope="col">#</th>
            {lifelines.map((lifeline) => (
              <th key={lifeline} scope="col">
                <ForeignText>{lifeline}</ForeignText>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {steps.slice(0, mostSteps).map((step, place) => (
            <tr key={step.id} data-selected={step.id === selection || undefined}>
              <td className={styles.number}>{place + 1}</td>
              {lifelines.map((lifeline) => (
                <td key={lifeline} className={styles.life}>
                  {lifeline === step.lifeline && (
                    <UnstyledButton className={styles.step} onClick={() => onSelect(step.id)}>
                      <StatusWord meaning={step.meaning}>
                        <ForeignText>{step.words}</ForeignText>
                      </StatusWord>
                      <span className={styles.time}>{afterText(step.at, steps[0]?.at)}</span>
                      {step.isBeforeClock && <span className={styles.clock}>its clock is behind</span>}
                    </UnstyledButton>
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {steps.length > mostSteps && (
        <p>
          The first {countText(mostSteps)} of {steps.length} steps are shown.
        </p>
      )}
    </div>
  )
}

const afterText = (at: number | undefined, first: number | undefined): string => {
  if (at === undefined || first === undefined) return ""
  const after = at - first
  return after === 0 ? "start" : `${after < 0 ? "−" : "+"}${durationText(Math.abs(after))}`
}

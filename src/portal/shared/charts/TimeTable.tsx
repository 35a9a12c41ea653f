import { UnstyledButton } from "@mantine/core"
import { useUtc } from "../../address/useUtc.ts"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { bucketText } from "../words/format.ts"
import type { TimeChartProps } from "./series.ts"
import styles from "./TimeChart.module.css"

/** The values of a chart as rows, the latest first. */
export const TimeTable = ({ bucketMs, format, label, onPick, points, series }: TimeChartProps) => {
  const utc = useUtc()
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached with the keyboard
    <div className={styles.table} tabIndex={0}>
      <table aria-label={label}>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ key, label: name }) => (
              <th key={key} scope="col">
                <ForeignText>{name}</ForeignText>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {points.toReversed().map(({ at, values }) => (
            <tr key={at}>
              <th scope="row">
                {onPick === undefined ? (
                  bucketText(new Date(at), bucketMs, utc)
                ) : (
                  <UnstyledButton className={styles.pick} title="Look at this time alone" onClick={() => onPick(at)}>
                    {bucketText(new Date(at), bucketMs, utc)}
                  </UnstyledButton>
                )}
              </th>
              {series.map(({ key }) => {
                const value = values[key]
                return <td key={key}>{value === null || value === undefined ? "–" : format(value)}</td>
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

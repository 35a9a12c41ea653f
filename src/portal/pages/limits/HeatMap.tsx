import { Tooltip, UnstyledButton } from "@mantine/core"
import { useMemo } from "react"
import { useTextSearch } from "../../address/search.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { amountText } from "../../shared/words/amountText.ts"
import { percentText, raiseEndsText, relativeText, usedUpText } from "../../shared/words/format.ts"
import styles from "./HeatMap.module.css"
import { heatRows, levelOf, meters } from "./heat.ts"
import type { LimitState } from "./state/limitStates.ts"

/** More rows would be slow to draw, and the fullest come first. */
const mostRows = 200

/** Keys and layers by their limits: how full each is now. */
export const HeatMap = ({ limits }: { readonly limits: ReadonlyArray<LimitState> }) => {
  const { change } = useTextSearch()
  const rows = useMemo(() => heatRows(limits), [limits])
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached with the keyboard
    <div className={styles.scroller} tabIndex={0}>
      <table className={styles.map} aria-label="How full limits are now">
        <thead>
          <tr>
            <th scope="col">Key or layer</th>
            {meters.map(({ label, name }) => (
              <th key={name} scope="col">
                <Tooltip label={name}>
                  <span>{label}</span>
                </Tooltip>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, mostRows).map(({ cells, owner }) => (
            <tr key={owner.id}>
              <th scope="row">
                <UnstyledButton className={styles.open} onClick={() => change({ open: owner.id })}>
                  <ForeignText title={owner.name}>{owner.name}</ForeignText>{" "}
                  {owner.scope !== "key" && <small>shared</small>}
                </UnstyledButton>
              </th>
              {meters.map(({ label, name }) => {
                const state = cells[name]
                return (
                  <td key={name}>
                    {state === undefined ? (
                      <span className={styles.none}>–</span>
                    ) : (
                      <Cell label={label} state={state} onOpen={() => change({ open: owner.id })} />
                    )}
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > mostRows && (
        <p className={styles.looked}>
          The {mostRows} fullest of {rows.length} are shown. Search for a name to see others.
        </p>
      )}
    </div>
  )
}

interface CellProps {
  readonly label: string
  readonly state: LimitState
  readonly onOpen: () => void
}

const Cell = ({ label, onOpen, state }: CellProps) => {
  const words = wordsOf(state)
  const share = state.share === null ? "?" : percentText(Math.round(state.share * 100), 100)
  return (
    <Tooltip label={words} multiline maw={320}>
      <UnstyledButton
        className={styles.cell}
        data-level={levelOf(state.share)}
        data-label={label}
        onClick={onOpen}
        aria-label={`${state.scope_name}, ${state.meter}: ${share}, ${words}`}
        tabIndex={-1}
      >
        {share}
      </UnstyledButton>
    </Tooltip>
  )
}

const wordsOf = ({ forecast, limit, raised_until, resets_at, reserved, unit, used, within }: LimitState): string => {
  const now = Date.now()
  const text = (amount: number) => amountText(amount, unit)
  return [
    used === null ? `unknown, of ${text(limit)}` : `${text(used)} of ${text(limit)} used`,
    reserved !== null && reserved > 0 ? `${text(reserved)} reserved` : undefined,
    within === null ? undefined : `for ${within}`,
    `resets ${relativeText(Date.parse(resets_at), now)}`,
    forecast === null ? undefined : Date.parse(forecast) <= now ? "used up" : usedUpText(forecast, now),
    raised_until === null ? undefined : raiseEndsText(raised_until, now)
  ]
    .filter((part) => part !== undefined)
    .join(" · ")
}

import { Meter } from "../../../shared/charts/Meter.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"
import { amountText } from "../../../shared/words/amountText.ts"
import styles from "./RequestDetail.module.css"
import { type LimitState, takenBy, useUsedBefore } from "./usedBefore.ts"
import type { FoundRequest } from "./useRequest.ts"

interface Props {
  readonly row: UsageRow
  readonly limits: FoundRequest["limits"]
}

/** What each limit of the key had used before the request, what the request took, and what is used now. */
export const RequestLimits = ({ limits, row }: Props) => {
  const before = useUsedBefore(row, limits.data?.limits ?? [])
  const states = limits.data?.limits ?? []
  return (
    <Panel
      title="Limits"
      note="before the request, after it, and now"
      query={limits}
      height={140}
      {...(states.length === 0 &&
        !limits.isPending && { empty: <p className={styles.muted}>No limit applies to this key.</p> })}
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached with the keyboard */}
      <div className={styles.table} tabIndex={0}>
        <table aria-label="Limits">
          <thead>
            <tr>
              <th scope="col">Limit</th>
              <th scope="col" data-numeric>
                Before
              </th>
              <th scope="col" data-numeric>
                After
              </th>
              <th scope="col">Now</th>
            </tr>
          </thead>
          <tbody>
            {states.map((state) => (
              <LimitRow
                key={`${state.scope} ${state.scope_id} ${state.meter} ${state.within}`}
                state={state}
                row={row}
                before={before(state)}
              />
            ))}
          </tbody>
        </table>
      </div>
      <p className={styles.muted}>
        Before and after are sums of the records in the window of the request. Requests that were refused take nothing.
        The limits are those of now.
      </p>
    </Panel>
  )
}

interface RowProps {
  readonly state: LimitState
  readonly row: UsageRow
  readonly before: number | undefined
}

const LimitRow = ({ before, row, state }: RowProps) => {
  const format = (amount: number) => amountText(amount, state.unit)
  return (
    <tr>
      <td>
        <code>{state.meter}</code>
        {state.scope !== "key" && (
          <>
            {" "}
            of <ForeignText>{state.scope_name}</ForeignText>
          </>
        )}
        {state.within !== null && <> for {state.within}</>}
        {row.denied_by === state.meter || row.denied_by === `shared_${state.meter}` ? (
          <strong> refused it</strong>
        ) : null}
      </td>
      <td data-numeric>{before === undefined ? "–" : format(before)}</td>
      <td data-numeric>{before === undefined ? "–" : format(before + takenBy(row, state.unit))}</td>
      <td>
        {state.used === null ? (
          `unknown, of ${format(state.limit)}`
        ) : (
          <Meter
            label={`${state.meter} now`}
            used={state.used}
            reserved={state.reserved ?? 0}
            limit={state.limit}
            format={format}
          />
        )}
      </td>
    </tr>
  )
}

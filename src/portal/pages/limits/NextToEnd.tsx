import { useTextSearch } from "../../address/search.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { BurnDown } from "./key/BurnDown.tsx"
import styles from "./state/Limits.module.css"
import { type LimitState, limitId } from "./state/limitStates.ts"
import type { useLimitPages } from "./useLimitPages.ts"

interface Props {
  readonly limits: ReadonlyArray<LimitState>
  readonly query: ReturnType<typeof useLimitPages>["query"]
}

const most = 2

/** The budgets that end first. They come last on their page, because they are known late and must not move what is there. */
export const NextToEnd = ({ limits, query }: Props) => {
  const { change } = useTextSearch()
  const ending = limits
    .filter(({ forecast, unit }) => unit === "usd" && forecast !== null)
    .sort((a, b) => Date.parse(a.forecast ?? "") - Date.parse(b.forecast ?? ""))
  if (query.isPending || ending.length === 0) return null
  return (
    <div className={styles.cards}>
      {ending.slice(0, most).map((state) => (
        <Panel
          key={limitId(state)}
          title={<ForeignText>{state.scope_name}</ForeignText>}
          note={<code>{state.meter}</code>}
        >
          <BurnDown state={state} onOpen={() => change({ open: `${state.scope}:${state.scope_id ?? ""}` })} />
        </Panel>
      ))}
    </div>
  )
}

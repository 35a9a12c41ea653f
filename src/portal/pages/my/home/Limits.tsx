import { useNow } from "../../../address/useNow.ts"
import { useApi } from "../../../api/queries.ts"
import { Meter } from "../../../shared/charts/Meter.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { RaiseEnds, UsedUp } from "../../../shared/words/LimitWords.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import {
  amountText,
  headline,
  inOrder,
  limitLabel,
  type OwnLimit,
  type SharedLimit,
  sharedWith,
  withinText
} from "../common/limits.ts"
import styles from "./Limits.module.css"

/** How much may still be used: the sentence, and a bar for each limit. */
export const Limits = () => {
  const limits = useApi("/admin-ui/v1/me/limits", {}, { refreshMs: 5_000 })
  const now = useNow(10_000)
  const own = inOrder(limits.data?.limits ?? [])
  const shared = limits.data?.shared ?? []
  return (
    <Panel query={limits} height={260}>
      <p className={styles.headline}>{headline(own, Math.max(now, Date.now()))}</p>
      {(own.length > 0 || shared.length > 0) && (
        <ul className={styles.limits}>
          {own.map((limit) => (
            <OwnMeter key={`${limit.meter} ${limit.within}`} limit={limit} />
          ))}
          {shared.map((limit) => (
            <SharedMeter key={`${limit.meter} ${limit.scope_name}`} limit={limit} />
          ))}
        </ul>
      )}
    </Panel>
  )
}

const OwnMeter = ({ limit }: { readonly limit: OwnLimit }) => {
  const label = `${limitLabel(limit)} ${withinText(limit.within)}`.trim()
  return (
    <li className={styles.limit}>
      <p className={styles.label}>
        <ForeignText>{label}</ForeignText>
      </p>
      {limit.used === null ? (
        <span>{amountText(limit.unit, limit.limit)}; how much is used is not known at the moment.</span>
      ) : (
        <Meter
          label={label}
          used={limit.used}
          reserved={limit.reserved ?? 0}
          limit={limit.limit}
          format={(amount) => amountText(limit.unit, amount)}
        />
      )}
      <p className={styles.note}>
        {limit.window === "minute" ? (
          "begins anew every minute"
        ) : (
          <>
            resets <When at={limit.resets_at} />
          </>
        )}
        {limit.forecast !== null && limit.window !== "minute" && (limit.remaining ?? 0) > 0 && (
          <span className={styles.warning}>
            {" "}
            · <UsedUp at={limit.forecast} />
          </span>
        )}
        {limit.raised_until !== null && (
          <>
            {" "}
            · <RaiseEnds at={limit.raised_until} />
          </>
        )}
      </p>
    </li>
  )
}

const SharedMeter = ({ limit }: { readonly limit: SharedLimit }) => (
  <li className={styles.limit}>
    <p className={styles.label}>{limitLabel(limit)}</p>
    <p className={styles.shared}>
      {amountText(limit.unit, limit.limit)}, shared with {sharedWith(limit.scope_name)}{" "}
      {limit.full === true && <StatusWord meaning="bad">used up</StatusWord>}
      {limit.full === false && <StatusWord meaning="good">not used up</StatusWord>}
    </p>
    <p className={styles.note}>
      resets <When at={limit.resets_at} />
    </p>
  </li>
)

import { useLiveRefresh } from "../../../api/live.ts"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { Meter } from "../../../shared/charts/Meter.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { PathLink } from "../../../shared/links/PathLink.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { countText, moneyText } from "../../../shared/words/format.ts"
import { RaiseEnds, UsedUp } from "../../../shared/words/LimitWords.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "./KeyPage.module.css"

const path = "/admin-ui/admin/limits/state"
const liveTopics = ["limits", "configuration"] as const
const refreshMs = 15_000

/** How much of each limit is used now, also of those that it shares with other keys. */
export const KeyMeters = ({ id }: { readonly id: string }) => {
  const state = useApi(path, { query: { scope: "key", id } }, { refreshMs })
  useLiveRefresh(liveTopics, [path])
  const maySeeLimits = useAllowed("usage:read")
  const mayRaise = useAllowed("policies:update") && maySeeLimits
  const limits = state.data?.limits ?? []
  return (
    <Panel
      title="Limits now"
      query={state}
      height={220}
      actions={maySeeLimits && <PathLink path={`/limits?open=key:${id}`}>Limits</PathLink>}
      {...(limits.length === 0 && { empty: <p>No limit holds for this key. It may send and spend what it wants.</p> })}
    >
      <ul className={styles.meters}>
        {limits.map(
          ({ forecast, limit, meter, raised_until, reserved, resets_at, scope, scope_name, unit, used, within }) => (
            <li key={`${scope} ${scope_name} ${meter} ${within ?? ""}`}>
              <div className={styles.meterWords}>
                <code>{meter}</code>
                {scope !== "key" && (
                  <span>
                    shared in <ForeignText>{scope_name}</ForeignText>
                  </span>
                )}
                {within !== null && (
                  <span>
                    within <ForeignText>{within}</ForeignText>
                  </span>
                )}
                {mayRaise && scope === "key" && (
                  <PathLink path={`/limits?do=raise&key_id=${id}&meter=${meter}`}>raise</PathLink>
                )}
              </div>
              {used === null ? (
                <span>The counter cannot be read.</span>
              ) : (
                <Meter
                  label={`${meter} of ${scope_name}`}
                  used={used}
                  reserved={reserved ?? 0}
                  limit={limit}
                  format={unit === "usd" ? moneyText : countText}
                />
              )}
              <span className={styles.note}>
                resets <When at={resets_at} />
                {forecast !== null && (
                  <>
                    {" "}
                    · <UsedUp at={forecast} />
                  </>
                )}
                {raised_until !== null && (
                  <>
                    {" "}
                    · <RaiseEnds at={raised_until} />
                  </>
                )}
              </span>
            </li>
          )
        )}
      </ul>
    </Panel>
  )
}

import { Button } from "@mantine/core"
import { useTextSearch } from "../../../address/search.ts"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { Meter } from "../../../shared/charts/Meter.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { IdLink } from "../../../shared/links/IdLink.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { amountText } from "../../../shared/words/amountText.ts"
import { RaiseEnds } from "../../../shared/words/LimitWords.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "../state/Limits.module.css"
import { keyOf, type LimitState, limitId, statePath } from "../state/limitStates.ts"
import { BurnDown } from "./BurnDown.tsx"
import { Exceptions } from "./Exceptions.tsx"
import { FreezeKey } from "./FreezeKey.tsx"
import { ResetLimit } from "./ResetLimit.tsx"
import { useLayerId } from "./useLayerId.ts"

const refreshMs = 10_000

/** All limits of a key or of a layer, with what can be done about them. */
export const OwnerLimits = ({ id }: { readonly id: string }) => {
  const { change } = useTextSearch()
  const mayRaise = useAllowed("policies:update")
  const keyId = keyOf(id)
  const layer = useLayerId(keyId === undefined ? id : undefined)
  const target = keyId === undefined ? layer.id : keyId
  const limits = useApi(
    statePath,
    { query: { scope: keyId === undefined ? "layer" : "key", id: target, limit: 100 } },
    { enabled: target !== undefined, refreshMs }
  )
  const states = limits.data?.limits ?? []
  const name = states.find(({ scope, scope_id }) => `${scope}:${scope_id ?? ""}` === id)?.scope_name
  return (
    <div className={styles.stack}>
      <p className={styles.line}>
        {keyId === undefined ? (
          <ForeignText>{name ?? id}</ForeignText>
        ) : (
          <IdLink path={`/keys/${keyId}`}>{name ?? "Key"}</IdLink>
        )}
      </p>
      {keyId !== undefined && (
        <div className={styles.actions}>
          {mayRaise && <Button onClick={() => change({ do: "raise", key_id: keyId })}>Raise a limit until …</Button>}
          <FreezeKey id={keyId} />
        </div>
      )}
      <Panel
        title="Limits"
        query={layer.query.error !== null ? layer.query : limits}
        height={180}
        {...(limits.data !== undefined && states.length === 0 && { empty: <p>No limit applies.</p> })}
      >
        <ul className={styles.list}>
          {states.map((state) => (
            <LimitLine key={limitId(state)} state={state} isOwn={`${state.scope}:${state.scope_id ?? ""}` === id} />
          ))}
        </ul>
      </Panel>
      {keyId !== undefined && <Exceptions keyId={keyId} />}
      {states
        .filter(({ unit }) => unit === "usd")
        .map((state) => (
          <Panel
            key={limitId(state)}
            title={<code>{state.meter}</code>}
            note={<ForeignText>{state.scope_name}</ForeignText>}
          >
            <BurnDown state={state} />
          </Panel>
        ))}
    </div>
  )
}

const LimitLine = ({ isOwn, state }: { readonly state: LimitState; readonly isOwn: boolean }) => (
  <li>
    <p className={styles.line}>
      <code>{state.meter}</code>
      {!isOwn && (
        <span>
          of <ForeignText>{state.scope_name}</ForeignText>
        </span>
      )}
      {state.within !== null && <span>for {state.within}</span>}
      {state.raised_until !== null && (
        <span>
          <RaiseEnds at={state.raised_until} />
        </span>
      )}
      <span className={styles.muted}>
        resets <When at={state.resets_at} />
        {state.state === "restored" && ", summed up from the records"}
      </span>
      <ResetLimit state={state} />
    </p>
    {state.used === null ? (
      <p className={styles.muted}>
        Unknown, of {amountText(state.limit, state.unit)}: neither the counter nor the records can be read.
      </p>
    ) : (
      <Meter
        label={state.meter}
        used={state.used}
        reserved={state.reserved ?? 0}
        limit={state.limit}
        format={(amount) => amountText(amount, state.unit)}
      />
    )}
  </li>
)

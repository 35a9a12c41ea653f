import { useTextSearch } from "../../../address/search.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Segments } from "../../../shared/page/Segments.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { Checks } from "./Checks.tsx"
import styles from "./RequestDetail.module.css"
import type { Explanation } from "./useRequest.ts"

/** How the policies decided, and how they would decide now. */
export const Decision = ({ explanation }: { readonly explanation: Explanation }) => {
  const { change, text } = useTextSearch()
  const isNow = text("decision") === "now"
  return (
    <div className={styles.stack}>
      <Segments
        aria-label="Decision"
        data={[
          { value: "then", label: "Then" },
          { value: "now", label: "Now" }
        ]}
        value={isNow ? "now" : "then"}
        onChange={(value) => change({ decision: value === "now" ? value : undefined })}
      />
      {isNow ? <Now now={explanation.now} /> : <Then explanation={explanation} />}
      <Changes explanation={explanation} />
    </div>
  )
}

const Then = ({ explanation: { decided } }: { readonly explanation: Explanation }) => (
  <div>
    <Verdict
      isAllowed={decided.allowed}
      words={decided.allowed ? "allowed" : `refused with ${decided.error_code ?? decided.status_code}`}
    />
    <p className={styles.muted}>
      {decided.sentence ?? "All checks passed."}
      {decided.policy_version !== null && ` The policy had version ${decided.policy_version}.`}
      {decided.policy_version === null && " No policy was loaded by then."}
    </p>
    <Raises raises={decided.limit_raises} />
    {decided.check !== null && (
      <ul className={styles.tree}>
        <li>
          {/* several layers may refuse only together, and older records name none */}
          <Layer name={decided.layer ?? "the layers together"} version={undefined} isDenying />
          <ul>
            <li>
              <code>{decided.check}</code> {decided.sentence}
            </li>
          </ul>
        </li>
      </ul>
    )}
    <p className={styles.muted}>
      {decided.layer === null
        ? "The record names no layers: see “Now” for those that apply today."
        : "The record names only the layer that refused, not those that let the request pass."}
    </p>
    <Checks checks={decided.checks} none="The record does not say which checks ran." />
  </div>
)

const Now = ({ now }: Pick<Explanation, "now">) => {
  if (now === null) return <p>No policy applies now: the request matched no route, or its key is gone.</p>
  return (
    <div>
      <Verdict isAllowed={now.decision.allowed} words={wouldBe(now.decision)} />
      <p className={styles.muted}>{now.decision.message}</p>
      <Raises raises={now.limit_raises} />
      <ul className={styles.tree} aria-label="Policy layers, in their order">
        {now.reasons.map(({ denies, kind, policy_version, scope_id }) => (
          <li key={`${kind} ${scope_id}`}>
            <Layer name={nameOf({ kind, scope_id })} version={policy_version} isDenying={denies.length > 0} />
            {denies.length > 0 && (
              <ul>
                {denies.map(({ check, message }) => (
                  <li key={check}>
                    <code>{check}</code> {message}
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
      <Checks checks={now.checks} none="No check ran." />
      {now.unchecked.length > 0 && (
        <p className={styles.muted}>
          Not checked, for the record lacks what they need: <code>{now.unchecked.join(", ")}</code>.
        </p>
      )}
    </div>
  )
}

/** A request that the policies allow may still be refused by a limit. */
const wouldBe = ({ allowed, limits_checked }: NonNullable<Explanation["now"]>["decision"]): string =>
  allowed ? (limits_checked ? "would be allowed" : "the policies would allow it") : "would be refused"

const Verdict = ({ isAllowed, words }: { readonly isAllowed: boolean; readonly words: string }) => (
  <StatusWord meaning={isAllowed ? "good" : "warning"}>{words}</StatusWord>
)

/** As the API names layers elsewhere: the key itself is `key`. */
const nameOf = ({ kind, scope_id }: { readonly kind: string; readonly scope_id: string | null }): string =>
  kind === "key" || scope_id === null ? kind : `${kind}:${scope_id}`

interface LayerProps {
  readonly name: string
  readonly version: number | undefined
  readonly isDenying: boolean
}

const Layer = ({ isDenying, name, version }: LayerProps) => (
  <div className={styles.layer}>
    <StatusWord meaning={isDenying ? "bad" : "good"}>{isDenying ? "refuses" : "lets pass"}</StatusWord>
    <code>{name}</code>
    {version !== undefined && <span className={styles.muted}>version {version}</span>}
  </div>
)

const Raises = ({ raises }: { readonly raises: Explanation["decided"]["limit_raises"] }) =>
  raises.length === 0 ? null : (
    <ul className={styles.changes}>
      {raises.map(({ id, limits, until }) => (
        <li key={id}>
          Exception, ends <When at={until} />:{" "}
          <code>
            {Object.entries(limits)
              .map(([name, value]) => `${name} ${value}`)
              .join(", ")}
          </code>
        </li>
      ))}
    </ul>
  )

const Changes = ({ explanation: { changes, policy_changed } }: { readonly explanation: Explanation }) => (
  <div>
    <h3>Changed in between</h3>
    {policy_changed ? (
      <ul className={styles.changes}>
        {changes.map(({ action, created_at, target_id, target_type }) => (
          <li key={`${created_at} ${action} ${target_id}`}>
            <code>{action}</code> {target_type} <ForeignText>{target_id}</ForeignText> <When at={created_at} />
          </li>
        ))}
      </ul>
    ) : (
      <p className={styles.muted}>Nothing that concerns this request.</p>
    )}
  </div>
)

import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { valueText } from "../../../shared/policy/fields.ts"
import { flatFields } from "../../../shared/policy/flatFields.ts"
import { Facts } from "../../../shared/words/Facts.tsx"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import styles from "./Simulate.module.css"
import type { SimulationResult, useSimulations } from "./useSimulations.ts"

/** The decisions side by side, each with what led to it. */
export const Decisions = ({
  simulations: { decided, error }
}: {
  readonly simulations: ReturnType<typeof useSimulations>
}) => {
  if (error !== null) {
    return (
      <Panel>
        <ErrorNote error={error} />
      </Panel>
    )
  }
  if (decided === undefined) return null
  const { now, proposed } = decided
  return (
    <>
      <div className={styles.columns} role="status">
        <Decision title={proposed === undefined ? "Decision" : "Now"} result={now} />
        {proposed !== undefined && <Decision title="With the change" result={proposed} />}
      </div>
      {proposed !== undefined && (
        <Panel title="What differs in force">
          <FieldDiff before={forceOf(now)} after={forceOf(proposed)} />
        </Panel>
      )}
    </>
  )
}

const forceOf = ({ effective_policy, guardrail_plan, shared_limits }: SimulationResult) => {
  const shared = Object.fromEntries(shared_limits.map(({ layer, ...limits }) => [`shared.${layer}`, limits]))
  return flatFields({ ...effective_policy, ...shared, guardrail_plan })
}

const Decision = ({ result, title }: { readonly title: string; readonly result: SimulationResult }) => {
  const { final_decision: decision, guardrail_plan, reasons, route_match, warnings } = result
  return (
    <Panel
      title={title}
      note={
        <StatusWord meaning={decision.allowed ? (decision.limits_checked ? "good" : "idle") : "bad"}>
          {decision.allowed ? (decision.limits_checked ? "allowed" : "allowed by the policies") : "refused"}
        </StatusWord>
      }
    >
      <p className={styles.sentence}>{decision.message}</p>
      <Facts
        facts={[
          ["Code", decision.error_code && <code key="code">{decision.error_code}</code>],
          ["Check", decision.check && <code key="check">{decision.check}</code>],
          ["Refused by", decision.layers.join(", ")],
          ["Route", <code key="route">{route_match.route}</code>],
          ["Guardrails", guardrail_plan.length === 0 ? "none" : guardrail_plan.join(", ")]
        ]}
      />
      <h3>Layers, in their order</h3>
      <ol className={styles.trace}>
        {reasons.map(({ denies, kind, policy_version, scope_id }) => (
          <li key={`${kind} ${scope_id ?? ""}`}>
            <span className={styles.layer}>
              <StatusWord meaning={denies.length === 0 ? "good" : "bad"}>
                {denies.length === 0 ? "allows" : "refuses"}
              </StatusWord>{" "}
              {kind} {scope_id !== null && kind !== "key" && <ForeignText>{scope_id}</ForeignText>}
              <span className={styles.version}> version {policy_version}</span>
            </span>
            {denies.map(({ check, message }) => (
              <p key={check}>
                <code>{check}</code> {message}
              </p>
            ))}
          </li>
        ))}
      </ol>
      {result.shared_limits.length > 0 && (
        <>
          <h3>Shared limits</h3>
          <ul className={styles.trace}>
            {result.shared_limits.map(({ layer, ...limits }) => (
              <li key={layer}>
                <ForeignText>{layer}</ForeignText>:{" "}
                {Object.entries(limits)
                  .filter(([, value]) => value !== null)
                  .map(([name, value]) => `${name} ${valueText(value)}`)
                  .join(", ")}
              </li>
            ))}
          </ul>
        </>
      )}
      {warnings.map((warning) => (
        <p key={warning} className={styles.warning}>
          <StatusWord meaning="warning">note</StatusWord> {warning}
        </p>
      ))}
    </Panel>
  )
}

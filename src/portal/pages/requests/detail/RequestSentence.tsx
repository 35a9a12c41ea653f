import { useAllowed } from "../../../api/session.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { shownText } from "../../../shared/foreign/marks.ts"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"
import { CopyText } from "../../../shared/words/CopyText.tsx"
import { countedText, durationText, moneyText } from "../../../shared/words/format.ts"
import { meaningOfStatus, StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "./RequestDetail.module.css"
import type { FoundRequest } from "./useRequest.ts"

interface Props {
  readonly row: UsageRow
  readonly request: FoundRequest
}

/** What became of the request in one sentence, and what to do about it. */
export const RequestSentence = ({ request: { bundle, explanation }, row }: Props) => {
  const mayChange = useAllowed("policies:update")
  const maySetPrices = useAllowed("settings:update")
  const decided = explanation.data?.decided
  const isRefused = row.upstream_ms === null && row.status === "failure"
  const simulated = { key_id: row.key_id, path: row.route, ...(row.model !== null && { model: row.model }) }
  const limit = limitOf(row.denied_by)
  return (
    <Panel>
      <p className={styles.sentence}>
        <StatusWord meaning={row.status === "failure" ? meaningOfStatus(Math.max(400, row.status_code)) : "good"}>
          {row.status_code}
        </StatusWord>{" "}
        {isRefused ? "Refused. " : row.status === "failure" ? "Failed. " : "Answered. "}
        {decided?.sentence ?? (row.status === "failure" ? "" : answered(row))}
      </p>
      <p className={styles.muted}>
        {row.denied_by !== null && (
          <>
            Check <code>{row.denied_by}</code>
            {row.denied_in_layer !== null && (
              <>
                {" "}
                of layer <ForeignText>{layerText(row)}</ForeignText>
              </>
            )}{" "}
            ·{" "}
          </>
        )}
        {row.error_code !== null && (
          <>
            <code>{row.error_code}</code> ·{" "}
          </>
        )}
        <When at={row.created_at} />
      </p>
      <div className={styles.actions}>
        {mayChange && (
          <LinkButton path="/policies/simulate" search={simulated}>
            Simulate with a change
          </LinkButton>
        )}
        {mayChange && limit !== undefined && (
          <LinkButton path="/limits" search={{ do: "raise", key_id: row.key_id, meter: limit }}>
            Raise the limit for a time
          </LinkButton>
        )}
        {maySetPrices && row.denied_by === "price" && row.model !== null && (
          <LinkButton path="/models" search={{ do: "price", model: row.model }}>
            Set the price of the model
          </LinkButton>
        )}
        {mayChange && limit === undefined && row.denied_by !== null && (
          <PolicyLink keyId={row.key_id} layer={row.denied_in_layer ?? "key"} />
        )}
        <CopyText
          label="Copy the debug bundle"
          what="The debug bundle"
          text={() => JSON.stringify({ record: row, bundle: bundle.data, explanation: explanation.data }, null, 2)}
        />
      </div>
    </Panel>
  )
}

/** People know a project by its name. */
const layerText = ({ denied_in_layer, project_id, project_name }: UsageRow): string | null =>
  project_name !== null && denied_in_layer === `project:${project_id}` ? `project ${project_name}` : denied_in_layer

interface PolicyLinkProps {
  readonly keyId: string
  /** The layer of a usage record is `key`, `global`, or a kind with its scope, such as `team:blue`. */
  readonly layer: string
}

/** Leads to the policy that refused the request. */
const PolicyLink = ({ keyId, layer }: PolicyLinkProps) => {
  const maySeeKeys = useAllowed("operators:manage")
  if (layer === "key")
    return (
      maySeeKeys && (
        <LinkButton path={`/keys/${keyId}`} search={{ tab: "policy" }}>
          Change the policy of the key
        </LinkButton>
      )
    )
  const [kind = layer] = layer.split(":", 1)
  const scope = layer.slice(kind.length + 1)
  return (
    <LinkButton path="/policies" search={{ do: "edit", kind, ...(scope !== "" && { scope }) }}>
      Change the layer
    </LinkButton>
  )
}

/** The limits that an exception can raise. Those that layers share cannot be. */
const raisable = [
  "rpm_limit",
  "tpm_limit",
  "max_requests_per_day",
  "max_tokens_per_day",
  "daily_budget_usd",
  "monthly_budget_usd"
] as const

const limitOf = (check: string | null) => raisable.find((name) => name === check)

const answered = ({ estimated_cost_usd, latency_ms, model, provider, total_tokens }: UsageRow): string => {
  const cost = estimated_cost_usd === null ? "" : ` for ${moneyText(estimated_cost_usd)}`
  const tokens = total_tokens === null ? "" : `, ${countedText(total_tokens, "token")}`
  return `${shownText(model ?? provider)} took ${durationText(latency_ms)}${tokens}${cost}.`
}

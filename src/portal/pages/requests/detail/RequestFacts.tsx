import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"
import { Count, Money } from "../../../shared/words/Amounts.tsx"
import { Facts } from "../../../shared/words/Facts.tsx"
import { percentText } from "../../../shared/words/format.ts"
import { IdLink } from "../../../shared/words/IdLink.tsx"
import type { Bundle } from "./useRequest.ts"

interface Props {
  readonly row: UsageRow
  readonly bundle: Bundle | undefined
}

const link = (path: string, id: string | null, name: string | null = id, search?: Readonly<Record<string, string>>) =>
  id === null ? null : (
    <IdLink path={path} {...(search !== undefined && { search })}>
      {name ?? id}
    </IdLink>
  )

const code = (text: string | null) => (text === null ? null : <code>{text}</code>)

/** Every field of the record, with links to what it names. */
export const RequestFacts = ({ bundle, row }: Props) => (
  <Facts
    facts={[
      ["Request", code(row.request_id)],
      ["Key", link(`/keys/${row.key_id}`, row.key_id, row.key_name ?? row.key_prefix)],
      [
        "Project",
        row.project_id === null ? null : link(`/projects/${row.project_id}`, row.project_id, row.project_name)
      ],
      ["Team", link("/requests", row.team_id, row.team_id, { team_id: row.team_id ?? "" })],
      ["Route", code(row.route)],
      [
        "Method and endpoint",
        code([row.http_method, row.endpoint_template ?? row.endpoint_path].filter(Boolean).join(" ") || null)
      ],
      [
        "Service",
        row.service_name === null ? null : link(`/services/${encodeURIComponent(row.service_name)}`, row.service_name)
      ],
      ["Provider", code(row.provider)],
      ["Model", code(row.model)],
      ["Streamed", row.streamed ? "yes" : "no"],
      ["Input tokens", <Count key="input" of={row.input_tokens} />],
      ["Output tokens", <Count key="output" of={row.output_tokens} />],
      [
        "Cached input",
        row.cached_input_tokens === null
          ? null
          : `${row.cached_input_tokens.toLocaleString("en-US")} (${percentText(row.cached_input_tokens, row.input_tokens ?? 0)})`
      ],
      ["Cache writes", <Count key="writes" of={row.cache_write_tokens} />],
      ["Reasoning tokens", <Count key="reasoning" of={row.reasoning_tokens} />],
      ["Cost", <Money key="cost" usd={row.estimated_cost_usd} source={row.usage_source} />],
      ["Price", code([row.cost_source, row.cost_mode, row.pricing_rule_name].filter(Boolean).join(" · "))],
      ["Task", row.task_id === null ? null : link(`/tasks/${encodeURIComponent(row.task_id)}`, row.task_id)],
      ["Run", link("/requests", row.run_id, row.run_id, { run_id: row.run_id ?? "" })],
      ["Session", link("/requests", row.session_id, row.session_id, { session_id: row.session_id ?? "" })],
      ["Trace", link("/requests", row.trace_id, row.trace_id, { trace_id: row.trace_id ?? "" })],
      ["Subject", link("/requests", row.subject, row.subject, { subject: row.subject ?? "" })],
      ["End user", link("/requests", row.end_user, row.end_user, { end_user: row.end_user ?? "" })],
      ["Client program", code(row.client)],
      ["Hash of the request", code(bundle?.request_hash ?? null)],
      ["Hash of the response", code(bundle?.response_hash ?? null)]
    ]}
  />
)

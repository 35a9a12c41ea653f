import { useUtc } from "../../../address/useUtc.ts"
import { IdLink } from "../../../shared/links/IdLink.tsx"
import type { FilterName } from "../../../shared/usage/fields.ts"
import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"
import { Count, Money } from "../../../shared/words/Amounts.tsx"
import { Facts } from "../../../shared/words/Facts.tsx"
import { countText, exactText, percentText } from "../../../shared/words/format.ts"
import type { Bundle } from "./useRequest.ts"

interface Props {
  readonly row: UsageRow
  readonly bundle: Bundle | undefined
}

const link = (path: string, id: string | null, name: string | null = id) =>
  id === null ? null : <IdLink path={path}>{name ?? id}</IdLink>

/** Leads to all requests that have the same. */
const filter = (name: FilterName, value: string | null) =>
  value === null ? null : (
    <IdLink path="/requests" search={{ [name]: value }}>
      {value}
    </IdLink>
  )

/** The whole time, for whoever compares it with another log. */
const ExactTime = ({ at }: { readonly at: string }) => {
  const utc = useUtc()
  return <time dateTime={at}>{exactText(new Date(at), utc)}</time>
}

const code = (text: string | null) => (text === null ? null : <code>{text}</code>)

/** Every field of the record, with links to what it names. */
export const RequestFacts = ({ bundle, row }: Props) => (
  <Facts
    facts={[
      ["Request", code(row.request_id)],
      ["Ended", <ExactTime key="ended" at={row.created_at} />],
      ["Key", link(`/keys/${row.key_id}`, row.key_id, row.key_name ?? row.key_prefix)],
      [
        "Project",
        row.project_id === null ? null : link(`/projects/${row.project_id}`, row.project_id, row.project_name)
      ],
      ["Team", filter("team_id", row.team_id)],
      ["Route", filter("route", row.route)],
      [
        "Method and endpoint",
        code([row.http_method, row.endpoint_template ?? row.endpoint_path].filter(Boolean).join(" ") || null)
      ],
      [
        "Service",
        row.service_name === null ? null : link(`/services/${encodeURIComponent(row.service_name)}`, row.service_name)
      ],
      ["Provider", filter("provider", row.provider)],
      ["Model", filter("model", row.model)],
      ["Streamed", row.streamed ? "yes" : "no"],
      ["Input tokens", <Count key="input" of={row.input_tokens} />],
      ["Output tokens", <Count key="output" of={row.output_tokens} />],
      [
        "Cached input",
        row.cached_input_tokens === null
          ? null
          : `${countText(row.cached_input_tokens)} (${percentText(row.cached_input_tokens, row.input_tokens ?? 0)})`
      ],
      ["Cache writes", <Count key="writes" of={row.cache_write_tokens} />],
      ["Reasoning tokens", <Count key="reasoning" of={row.reasoning_tokens} />],
      ["Cost", <Money key="cost" usd={row.estimated_cost_usd} source={row.usage_source} />],
      ["Price", code([row.cost_source, row.cost_mode, row.pricing_rule_name].filter(Boolean).join(" · "))],
      ["Task", row.task_id === null ? null : link(`/tasks/${encodeURIComponent(row.task_id)}`, row.task_id)],
      ["Run", filter("run_id", row.run_id)],
      ["Session", filter("session_id", row.session_id)],
      ["Trace", filter("trace_id", row.trace_id)],
      ["Subject", filter("subject", row.subject)],
      ["End user", filter("end_user", row.end_user)],
      ["Client program", filter("client", row.client)],
      ["Hash of the request", code(bundle?.request_hash ?? null)],
      ["Hash of the response", code(bundle?.response_hash ?? null)]
    ]}
  />
)

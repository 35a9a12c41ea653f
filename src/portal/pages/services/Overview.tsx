import { Button, Stack } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { useProjectName } from "../../shared/keys/ProjectPicker.tsx"
import { IdLink } from "../../shared/links/IdLink.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import { bytesText, durationText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { costText, type Service } from "./service.tsx"

/** What the service still needs, and how it is set. */
export const Overview = ({ service }: { readonly service: Service }) => (
  <Stack gap="sm">
    <Checklist service={service} />
    <Panel title="Settings">
      <Facts
        facts={[
          ["route_pattern", <code key="route">{service.route_pattern}</code>],
          ["upstream_base_url", <ForeignText key="url">{service.upstream_base_url ?? "not set"}</ForeignText>],
          ["allowed_methods", <code key="methods">{service.allowed_methods.join(" ")}</code>],
          ["credential", service.credential_configured ? "configured" : "missing"],
          ["health check", `${service.health_check_method} ${service.health_check_path ?? "/"}`],
          ["timeout_ms", durationText(service.timeout_ms)],
          ["max_body_bytes", bytesText(service.max_body_bytes)],
          ["price", costText(service)],
          [
            "pricing_rules",
            service.pricing_rules.length === 0
              ? "none"
              : `${service.pricing_rules.length}, the first that matches applies`
          ],
          ["fallback_services", service.fallback_services.length === 0 ? "none" : service.fallback_services.join(", ")],
          ["project", service.project_id === null ? "none" : <ProjectLink key="project" id={service.project_id} />],
          ["source", service.source === "studio" ? `studio (${service.studio_service_id})` : "registered here"],
          ["sync_status", service.sync_status],
          ["last synced", <When key="synced" at={service.last_synced_at} absent="never" />],
          ["changed", <When key="changed" at={service.updated_at} />]
        ]}
      />
    </Panel>
  </Stack>
)

const ProjectLink = ({ id }: { readonly id: string }) => (
  <IdLink path={`/projects/${encodeURIComponent(id)}`}>{useProjectName(id)}</IdLink>
)

const Checklist = ({ service }: { readonly service: Service }) => {
  const { change } = useTextSearch()
  const mayChange = useAllowed("services:update")
  const health = useApi("/admin-ui/admin/provider-health/state", {})
  const checked = health.data?.find(({ name }) => name === service.name)
  const missing = new Set<string>(service.missing_runtime_fields)
  const steps: ReadonlyArray<readonly [label: string, isDone: boolean, detail: string]> = [
    ["It has an address", !missing.has("upstream_base_url"), "upstream_base_url"],
    ["It has a credential", !missing.has("credential"), "credential"],
    ["It is enabled", service.enabled, "enabled"],
    [
      "It responds to its health check",
      checked?.status === "healthy",
      checked === undefined ? "not checked yet" : checked.status
    ],
    [
      "Its endpoints are known",
      service.openapi_endpoints.length > 0,
      `${service.openapi_endpoints.length} from its OpenAPI document`
    ]
  ]
  return (
    <Panel
      title="Setup"
      note={service.missing_runtime_fields.length === 0 ? undefined : "Requests are refused until the rest is set."}
      actions={
        mayChange && (
          <>
            <LinkButton path="/upstreams" search={{ do: "check", tab: "health" }}>
              Run the checks
            </LinkButton>
            <Button variant="default" onClick={() => change({ do: "edit" })}>
              Fill in
            </Button>
          </>
        )
      }
    >
      <Facts
        facts={steps.map(([label, isDone, detail]) => [
          label,
          <span key={label}>
            <StatusWord meaning={isDone ? "good" : "warning"}>{isDone ? "done" : "open"}</StatusWord>{" "}
            <code>{detail}</code>
          </span>
        ])}
      />
    </Panel>
  )
}

import { Alert, Button, Stack } from "@mantine/core"
import { useState } from "react"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { Panel } from "../../shared/page/Panel.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import { bytesText, durationText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { PassthroughForm } from "./PassthroughForm.tsx"
import { type Settings, settingsPath } from "./passthroughSettings.ts"

/** What an open group lets people do, worst first. */
const warningsOf = (settings: Settings): ReadonlyArray<readonly [field: keyof Settings, sentence: string]> => {
  const all: ReadonlyArray<readonly [keyof Settings, boolean, string]> = [
    [
      "admin_api_exposure",
      settings.admin_api_exposure === "explicitly_exposed",
      "Every key may call the upstream’s administration, with the upstream’s own credential."
    ],
    [
      "admin_api_exposure",
      settings.admin_api_exposure === "operator_only",
      "Operators may call the upstream’s administration through the proxy listener."
    ],
    [
      "ui_exposure",
      settings.ui_exposure === "explicitly_exposed",
      "Everybody who reaches the proxy listener sees the upstream’s UI."
    ],
    [
      "ui_exposure",
      settings.ui_exposure === "trusted_ingress",
      "The trusted gateway in front decides who sees the upstream’s UI."
    ],
    [
      "ui_exposure",
      settings.ui_exposure === "operator_only",
      "Operators see the upstream’s UI through the proxy listener."
    ],
    [
      "guardrails",
      settings.guardrails === "skip",
      "Requests on the wildcard pass no guardrail, also of keys for which guardrails are mandatory."
    ],
    [
      "body_policies",
      settings.body_policies === "skip",
      "Policies about the body, such as allowed_models, do not hold on the wildcard."
    ],
    ["ownership", settings.ownership === "shared", "Every key may use the files and batches that others created."],
    [
      "allowed_paths",
      settings.allowed_paths.some((path) => path === "*" || path === "/*"),
      "All paths of the upstream are open, also those that it adds later."
    ]
  ]
  return all.filter(([, holds]) => holds).map(([field, , sentence]) => [field, sentence] as const)
}

/** Requests that match no route: what of the upstream is open, and to whom. */
export const Passthrough = () => {
  const mayChange = useAllowed("providers:update")
  const query = useApi(settingsPath, {})
  const [isOpen, setOpen] = useState(false)
  const settings = query.data
  const warnings = settings?.enabled === true ? warningsOf(settings) : []
  return (
    <Stack gap="sm">
      {warnings.map(([field, sentence]) => (
        <Alert key={sentence} color="yellow" title={<code>{field}</code>}>
          {sentence}
        </Alert>
      ))}
      <Panel
        title="Wildcard"
        query={query}
        height={320}
        actions={
          mayChange &&
          settings !== undefined && (
            <Button variant="default" onClick={() => setOpen(true)}>
              Change
            </Button>
          )
        }
      >
        {settings !== undefined && (
          <Facts
            facts={[
              [
                "enabled",
                <StatusWord key="enabled" meaning={settings.enabled ? "warning" : "idle"}>
                  {settings.enabled ? "open" : "closed: such requests are refused"}
                </StatusWord>
              ],
              ["allowed_paths", <code key="paths">{settings.allowed_paths.join("  ")}</code>],
              ["allowed_methods", <code key="methods">{settings.allowed_methods.join(" ")}</code>],
              ["ui_exposure", <code key="ui">{settings.ui_exposure}</code>],
              ["admin_api_exposure", <code key="admin">{settings.admin_api_exposure}</code>],
              ["guardrails", <code key="guardrails">{settings.guardrails}</code>],
              ["body_policies", <code key="body">{settings.body_policies}</code>],
              ["ownership", <code key="ownership">{settings.ownership}</code>],
              ["timeout_ms", durationText(settings.timeout_ms)],
              ["max_request_body_bytes", bytesText(settings.max_request_body_bytes)],
              [
                "max_response_body_bytes",
                `${bytesText(settings.max_response_body_bytes)}${settings.limits_streams ? ", event streams too" : ""}`
              ],
              ["changed", <When key="changed" at={settings.updated_at} />]
            ]}
          />
        )}
      </Panel>
      {isOpen && settings !== undefined && <PassthroughForm settings={settings} onClose={() => setOpen(false)} />}
    </Stack>
  )
}

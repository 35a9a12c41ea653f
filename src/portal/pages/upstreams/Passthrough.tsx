import { Button, Stack } from "@mantine/core"
import { Fragment, useState } from "react"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { Panel } from "../../shared/page/Panel.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import { bytesText, durationText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { Exposure } from "./Exposure.tsx"
import { PassthroughForm } from "./PassthroughForm.tsx"
import { settingsPath } from "./passthroughSettings.ts"

/** Requests that match no route: what of the upstream is open, and to whom. */
export const Passthrough = () => {
  const mayChange = useAllowed("providers:update")
  const query = useApi(settingsPath, {})
  const [isOpen, setOpen] = useState(false)
  const settings = query.data
  return (
    <Stack gap="sm">
      {settings?.enabled === true && <Exposure of={settings} />}
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
                <Fragment key="enabled">
                  <StatusWord meaning={settings.enabled ? "warning" : "idle"}>
                    {settings.enabled ? "open" : "closed"}
                  </StatusWord>
                  {!settings.enabled && " Such requests are refused."}
                </Fragment>
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

import { Alert, Button, Stack } from "@mantine/core"
import { useState } from "react"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { Panel } from "../../shared/page/Panel.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import { durationText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { FrontDoorForm } from "./FrontDoorForm.tsx"
import { path } from "./frontDoor.ts"

const sources = {
  persisted: "stored here: the environment’s settings do not apply",
  environment: "from the environment; the first change here stores all of them",
  unset: "not set"
} as const

/** The identity provider and the trusted gateway in front. */
export const FrontDoor = () => {
  const mayChange = useAllowed("settings:update")
  const query = useApi(path, {})
  const [isOpen, setOpen] = useState(false)
  const settings = query.data
  const identity = settings?.identity_provider
  const trusted = settings?.trusted_gateway
  return (
    <>
      {trusted?.trusted_header_enabled === true && !trusted.secret_configured && (
        <Alert color="yellow">
          Trusted headers are on, and their secret is missing, so that no such header is believed. Enter the secret
          again.
        </Alert>
      )}
      <Panel
        title="Identities of callers"
        note={settings === undefined ? undefined : sources[settings.source]}
        query={query}
        height={360}
        actions={
          mayChange &&
          settings !== undefined && (
            <Button variant="default" onClick={() => setOpen(true)}>
              Change
            </Button>
          )
        }
      >
        {settings !== undefined && identity !== undefined && (
          <Stack gap="md">
            <section>
              <h3>Gateway key</h3>
              <Facts facts={[["svc_key_header", <code key="header">{settings.svc_key_header}</code>]]} />
            </section>
            <section>
              <h3>Identity provider</h3>
              <Facts
                facts={[
                  ["identity_enabled", <OnOff key="on" isOn={identity.enabled} />],
                  ["issuer", identity.issuer],
                  ["oidc_discovery_url", identity.oidc_discovery_url],
                  ["tenant_id", identity.tenant_id],
                  ["audience", identity.audience],
                  ["required_scope", identity.required_scope],
                  ["required_role", identity.required_role],
                  ["allowed_groups", identity.allowed_groups.length === 0 ? "all" : identity.allowed_groups.join(", ")],
                  ["accepted_algorithms", <code key="algorithms">{identity.accepted_algorithms.join(" ")}</code>],
                  ["jwks_cache_ttl_seconds", durationText(identity.jwks_cache_ttl_seconds * 1_000)],
                  ["clock_skew_seconds", durationText(identity.clock_skew_seconds * 1_000)]
                ]}
              />
            </section>
            <section>
              <h3>Trusted gateway in front</h3>
              <Facts
                facts={[
                  [
                    "trusted_gateway_header_enabled",
                    <OnOff key="on" isOn={settings.trusted_gateway.trusted_header_enabled} />
                  ],
                  ["secret", settings.trusted_gateway.secret_configured ? "configured" : "missing"],
                  ["changed", <When key="changed" at={settings.updated_at} absent="never here" />]
                ]}
              />
            </section>
          </Stack>
        )}
      </Panel>
      {isOpen && settings !== undefined && <FrontDoorForm settings={settings} onClose={() => setOpen(false)} />}
    </>
  )
}

const OnOff = ({ isOn }: { readonly isOn: boolean }) => (
  <StatusWord meaning={isOn ? "good" : "idle"}>{isOn ? "on" : "off"}</StatusWord>
)

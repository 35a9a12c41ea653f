import { Button, Stack } from "@mantine/core"
import { type Range, useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import { addressOf } from "../../api/control.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useAllowed } from "../../api/session.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { CredentialOfKey } from "./CredentialOfKey.tsx"
import { Health } from "./Health.tsx"
import { Mappings } from "./Mappings.tsx"
import { observedPath, observedRequest } from "./Observed.tsx"
import { OpenUi } from "./OpenUi.tsx"
import { Passthrough } from "./Passthrough.tsx"
import { ProviderForm } from "./ProviderForm.tsx"
import { Providers } from "./Providers.tsx"
import { settingsPath } from "./passthroughSettings.ts"

const liveTopics = ["configuration"] as const
const paths = [
  "/admin-ui/admin/providers",
  "/admin-ui/admin/providers/upstream-credentials",
  "/admin-ui/admin/providers/upstream-passthrough",
  "/admin-ui/admin/provider-health/state"
]

/** Returns the requests of a tab, and the sections of the configuration that have what it shows. */
const shownOf = (tab: string | undefined, range: Pick<Range, "from" | "to">): Parameters<typeof CopyAs>[0] => {
  switch (tab) {
    case "health":
      return {
        address: addressOf(observedPath, observedRequest(range)),
        and: ["/admin-ui/admin/provider-health/state"]
      }
    case "credentials":
      return { address: "/admin-ui/admin/providers/upstream-credentials", sections: ["credential_mappings"] }
    case "passthrough":
      return { address: settingsPath, sections: ["upstream_passthrough"] }
    default:
      return { address: "/admin-ui/admin/providers", sections: ["providers"] }
  }
}

/** Where requests go, with which credential, and how it is with them. */
const UpstreamsPage = () => {
  const { change, text } = useTextSearch()
  const { range } = useRange()
  const mayChange = useAllowed("providers:update")
  useLiveRefresh(liveTopics, paths)
  return (
    <>
      <PageHeader
        title="Upstreams"
        lead="Where requests go, with which credential, and how well that works."
        actions={
          <>
            <CopyAs {...shownOf(text("tab"), range)} />
            {mayChange && (
              <>
                <OpenUi />
                <Button variant="default" onClick={() => change({ do: "check", tab: "health" })}>
                  Run checks
                </Button>
                <Button onClick={() => change({ do: "create" })}>Add a provider</Button>
              </>
            )}
          </>
        }
      />
      <Tabs
        tabs={[
          { value: "providers", label: "Providers", content: () => <Providers /> },
          { value: "health", label: "Health", content: () => <Health /> },
          {
            value: "credentials",
            label: "Credentials of keys and projects",
            content: () => (
              <Stack gap="sm">
                <CredentialOfKey />
                <Mappings />
              </Stack>
            )
          },
          { value: "passthrough", label: "Wildcard", content: () => <Passthrough /> }
        ]}
      />
      {text("do") === "create" && mayChange && <ProviderForm onClose={() => change({ do: undefined })} />}
    </>
  )
}

export default UpstreamsPage

import { Stack } from "@mantine/core"
import { useApi } from "../../api/queries.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { Connection } from "./Connection.tsx"
import { RegistryImport } from "./RegistryImport.tsx"
import { StudioServices } from "./StudioServices.tsx"
import { Versions } from "./Versions.tsx"

/** Services that another system describes: look, import, and go back to what was. */
const StudioPage = () => {
  const connection = useApi("/admin-ui/admin/studio/connection", {})
  return (
    <>
      <PageHeader
        title="Studio"
        lead="A studio is a catalogue of services. What is imported from it is disabled until you enable it."
        actions={<CopyAs address="/admin-ui/admin/studio/services" />}
      />
      <Tabs
        tabs={[
          {
            value: "services",
            label: "Its services",
            content: () => (
              <Stack gap="sm">
                <Connection query={connection} />
                <StudioServices isConnected={connection.data?.base_url !== null && connection.data !== undefined} />
              </Stack>
            )
          },
          { value: "registry", label: "Import a list", content: () => <RegistryImport /> },
          { value: "versions", label: "Versions", content: () => <Versions /> }
        ]}
      />
    </>
  )
}

export default StudioPage

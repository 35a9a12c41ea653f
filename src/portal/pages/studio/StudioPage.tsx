import { Stack } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { useApi } from "../../api/queries.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { Connection } from "./Connection.tsx"
import { RegistryImport } from "./RegistryImport.tsx"
import { StudioServices } from "./StudioServices.tsx"
import { Versions, versionsPath } from "./Versions.tsx"

/** Services that another system describes: look, import, and go back to what was. */
const StudioPage = () => {
  const { text } = useTextSearch()
  const connection = useApi("/admin-ui/admin/studio/connection", {})
  return (
    <>
      <PageHeader
        title="Studio"
        lead="A studio is a catalogue of services. What is imported from it is disabled until you enable it."
        actions={
          <CopyAs
            address={text("tab") === "versions" ? versionsPath : "/admin-ui/admin/studio/services"}
            sections={["studio_connection"]}
          />
        }
      />
      <Tabs
        tabs={[
          {
            value: "services",
            label: "Its services",
            content: () => (
              <Stack gap="sm">
                <Connection query={connection} />
                <StudioServices connection={connection} />
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

import { Stack } from "@mantine/core"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { FrontDoor } from "./FrontDoor.tsx"
import { StudioLink } from "./StudioLink.tsx"

/** How callers of the gateway prove who they are, and where services come from. */
const SettingsPage = () => (
  <>
    <PageHeader
      title="Settings"
      lead="How callers of the gateway prove who they are, and where services come from."
      actions={<CopyAs address="/admin-ui/admin/auth/front-door" sections={["front_door", "studio_connection"]} />}
    />
    <Stack gap="sm">
      <FrontDoor />
      <StudioLink />
    </Stack>
  </>
)

export default SettingsPage

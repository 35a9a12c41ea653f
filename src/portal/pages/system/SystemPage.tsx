import { Stack } from "@mantine/core"
import { useApi } from "../../api/queries.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { meaningOfReadiness, StatusWord } from "../../shared/words/StatusWord.tsx"
import { Findings } from "./Findings.tsx"
import { Migrations } from "./Migrations.tsx"
import { Overhead } from "./Overhead.tsx"
import { OverheadHistogram } from "./OverheadHistogram.tsx"
import { Processes } from "./Processes.tsx"
import { Servers } from "./Servers.tsx"
import { systemPath } from "./system.ts"

const refreshMs = 10_000

/** Is the installation itself well: its processes, what they depend on, and the schema. */
const SystemPage = () => {
  const query = useApi(systemPath, {}, { refreshMs })
  const system = query.data
  return (
    <>
      <PageHeader
        title="System"
        lead="The processes of this installation, the servers that they use, and what the gateway adds to each request."
        beside={
          system !== undefined && (
            <StatusWord meaning={meaningOfReadiness[system.status]}>{system.status.replace("_", " ")}</StatusWord>
          )
        }
        actions={<CopyAs address={systemPath} />}
      />
      <Stack gap="sm">
        <Findings query={query} />
        <Servers query={query} />
        <Processes query={query} />
        <Overhead />
        <OverheadHistogram />
        <Migrations query={query} />
      </Stack>
    </>
  )
}

export default SystemPage

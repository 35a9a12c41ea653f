import { useMemo } from "react"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { type Meaning, StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { DrainProcess } from "./DrainProcess.tsx"
import type { System, SystemProps } from "./system.ts"

type Process = NonNullable<System["processes"]>[number]

const meanings: Readonly<Record<Process["phase"], Meaning>> = {
  starting: "working",
  serving: "good",
  draining: "warning",
  retiring: "waiting"
}

/** Every process that has said within half a minute that it runs. */
export const Processes = ({ query }: SystemProps) => {
  const mayDrain = useAllowed("settings:update")
  const isDataLost = query.data?.data_lost_at_exit ?? false
  const withDrain = useMemo(() => (mayDrain ? [...columns, drainColumn(isDataLost)] : columns), [mayDrain, isDataLost])
  const processes = query.data?.processes
  const versions = new Set((processes ?? []).map(({ version }) => version))
  return (
    <Panel
      title="Processes"
      note={versions.size > 1 ? `${versions.size} versions run side by side.` : undefined}
      query={query}
      height={140}
      flush
    >
      <DataTable
        name="processes"
        label="Processes"
        columns={withDrain}
        rows={processes ?? []}
        rowId={({ id }) => id}
        empty={
          <Empty>
            {processes === null
              ? "Redis is unreachable, so the other processes are not known."
              : "No process has said that it runs."}
          </Empty>
        }
      />
    </Panel>
  )
}

const columns: ReadonlyArray<Column<Process>> = [
  { id: "role", header: "Role", cell: ({ answers, role }) => `${role}${answers ? ", this one" : ""}` },
  {
    id: "phase",
    header: "Phase",
    main: true,
    cell: ({ phase }) => <StatusWord meaning={meanings[phase]}>{phase}</StatusWord>
  },
  { id: "version", header: "Version", main: true, cell: ({ version }) => <code>{version}</code> },
  { id: "host", header: "Host", main: true, cell: ({ host }) => <ForeignText>{host}</ForeignText> },
  { id: "pid", header: "Process id", numeric: true, cell: ({ pid }) => pid },
  { id: "started", header: "Started", cell: ({ started_at }) => <When at={started_at} /> },
  { id: "seen", header: "Last heard of", cell: ({ seen_at }) => <When at={seen_at} /> }
]

const drainColumn = (isDataLost: boolean): Column<Process> => ({
  id: "drain",
  header: "Drain",
  main: true,
  cell: (process) => <DrainProcess process={process} isDataLost={isDataLost} />
})

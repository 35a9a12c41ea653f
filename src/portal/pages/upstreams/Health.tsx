import { Button, Stack } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { call } from "../../api/control.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { useSubmit } from "../../shared/change/useSubmit.ts"
import { ChangeDialog } from "../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { Count } from "../../shared/words/Amounts.tsx"
import { curlOf } from "../../shared/words/CopyAs.tsx"
import { durationText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { HealthForm } from "./HealthForm.tsx"
import { HealthHistory } from "./HealthHistory.tsx"
import { type HealthState, meaningOfHealth, subjectOf } from "./healthStates.ts"
import { Observed } from "./Observed.tsx"

const checkPath = "/admin-ui/admin/provider-health/check"

/** What checks found, what requests saw, and what changed when. It informs people; requests go on whatever it says. */
export const Health = () => {
  const { change, text } = useTextSearch()
  const mayChange = useAllowed("providers:update")
  const states = useApi("/admin-ui/admin/provider-health/state", {})
  const close = () => change({ do: undefined })
  return (
    <Stack gap="sm">
      <Panel
        title="Checks"
        note="Each enabled upstream and service, as the last check or an operator left it."
        query={states}
        height={180}
        flush
        actions={
          mayChange && (
            <>
              <Button variant="default" onClick={() => change({ do: "state" })}>
                Record a state by hand
              </Button>
              <Button variant="default" onClick={() => change({ do: "check" })}>
                Run checks
              </Button>
            </>
          )
        }
      >
        <DataTable
          name="health"
          label="States"
          columns={stateColumns}
          rows={states.data ?? []}
          rowId={subjectOf}
          onOpen={(state) => change({ of: subjectOf(state) })}
          empty={
            <Empty command={mayChange && curlOf({ method: "POST", address: checkPath })}>
              Nothing was checked yet. The simulator is not checked.
            </Empty>
          }
        />
      </Panel>
      <Observed />
      <HealthHistory subject={text("of")} />
      {text("do") === "state" && mayChange && <HealthForm states={states.data ?? []} onClose={close} />}
      {text("do") === "check" && mayChange && <CheckDialog onClose={close} />}
    </Stack>
  )
}

/** Asks first: an address that somebody else has made must not send anything by itself. */
const CheckDialog = ({ onClose }: { readonly onClose: () => void }) => {
  const { error, isBusy, submit } = useSubmit<unknown>()
  const check = async () => {
    const states = await submit(() => call("POST", checkPath, {}), { refresh: true })
    if (states !== undefined) onClose()
  }
  return (
    <ChangeDialog
      title="Check the upstreams"
      action="Run the checks"
      isBusy={isBusy}
      error={error}
      onClose={onClose}
      onConfirm={() => void check()}
    >
      <p>Each enabled upstream and service gets one request. What the checks find is recorded as its state.</p>
    </ChangeDialog>
  )
}

const stateColumns: ReadonlyArray<Column<HealthState>> = [
  { id: "name", header: "Name", cell: ({ name }) => <ForeignText>{name}</ForeignText> },
  {
    id: "status",
    header: "Status",
    main: true,
    cell: ({ status }) => <StatusWord meaning={meaningOfHealth[status]}>{status}</StatusWord>
  },
  { id: "provider", header: "Kind", cell: ({ provider }) => provider },
  { id: "error", header: "Reason", main: true, cell: ({ last_error_code }) => <code>{last_error_code ?? "–"}</code> },
  {
    id: "failures",
    header: "Failures in a row",
    numeric: true,
    cell: ({ consecutive_failures }) => consecutive_failures
  },
  {
    id: "active",
    header: "active_check_ok",
    hidden: true,
    cell: ({ active_check_ok }) => (active_check_ok === null ? "–" : active_check_ok ? "yes" : "no")
  },
  {
    id: "passive-successes",
    header: "passive_success_count",
    numeric: true,
    hidden: true,
    cell: ({ passive_success_count }) => <Count of={passive_success_count} />
  },
  {
    id: "passive-failures",
    header: "passive_failure_count",
    numeric: true,
    hidden: true,
    cell: ({ passive_failure_count }) => <Count of={passive_failure_count} />
  },
  {
    id: "cooldown",
    header: "cooldown_until",
    hidden: true,
    cell: ({ cooldown_until }) => <When at={cooldown_until} absent="–" />
  },
  { id: "circuit", header: "circuit_state", hidden: true, cell: ({ circuit_state }) => <code>{circuit_state}</code> },
  {
    id: "latency",
    header: "Mean time",
    numeric: true,
    cell: ({ average_latency_ms }) => (average_latency_ms === null ? "–" : durationText(average_latency_ms))
  },
  { id: "checked", header: "Checked", main: true, cell: ({ checked_at }) => <When at={checked_at} absent="never" /> }
]

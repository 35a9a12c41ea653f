import { Autocomplete, TextInput } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import type { BodyOf, ResponseOf } from "../../api/Endpoints.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { LazySelect } from "../../shared/fields/LazySelect.tsx"
import { Segments } from "../../shared/page/Segments.tsx"
import { FieldDiff } from "../../shared/words/FieldDiff.tsx"
import { type Evidence, EvidenceFields, evidenceOf } from "./EvidenceFields.tsx"
import { subjectOf } from "./healthStates.ts"

type State = ResponseOf<"GET", "/admin-ui/admin/provider-health/state">[number]
type NewState = BodyOf<"POST", "/admin-ui/admin/provider-health/state">

const kinds = ["upstream", "internal-service", "compat"] as const
const statuses = ["healthy", "degraded", "unhealthy", "unknown"] as const
const circuits = ["closed", "half_open", "open"] as const

/** Records what an operator knows. It replaces the stored state until the next check. */
export const HealthForm = ({
  onClose,
  states
}: {
  readonly states: ReadonlyArray<State>
  readonly onClose: () => void
}) => {
  const [name, setName] = useState(states[0]?.name ?? "")
  const [chosenKind, setKind] = useState<NewState["provider"]>()
  const [status, setStatus] = useState<(typeof statuses)[number]>("degraded")
  const [circuit, setCircuit] = useState<(typeof circuits)[number]>("closed")
  const [reason, setReason] = useState("")
  const [changed, setChanged] = useState<Partial<Evidence>>({})
  const { ask, dialog } = useConfirm()
  // a provider and a service may have the same name
  const provider = chosenKind ?? states.find((state) => state.name === name)?.provider ?? "upstream"
  const stored = states.find((state) => state.name === name && state.provider === provider)
  const evidence = { ...evidenceOf(stored), ...changed }
  const body: NewState = {
    ...stored,
    ...evidence,
    name,
    provider,
    status,
    circuit_state: circuit,
    last_error_code: reason === "" ? null : reason
  }
  const pick = (state: Partial<NewState>) => ({
    status: state.status,
    circuit_state: state.circuit_state,
    last_error_code: state.last_error_code,
    ...evidenceOf(state)
  })
  return (
    <>
      <FormDrawer
        title="Record a state by hand"
        action="Show the difference"
        isBusy={false}
        isDisabled={name === ""}
        error={null}
        onSubmit={() =>
          ask({
            title: `State of ${name}`,
            action: "Record",
            body: (
              <>
                <FieldDiff before={stored === undefined ? {} : pick(stored)} after={pick(body)} />
                <p>It informs people. Requests go on whatever it says.</p>
              </>
            ),
            run: () => call("POST", "/admin-ui/admin/provider-health/state", { body }),
            ...(stored !== undefined && {
              undo: () => call("POST", "/admin-ui/admin/provider-health/state", { body: stored })
            }),
            done: `The state of ${name} is recorded.`,
            audit: { type: "provider_health", id: subjectOf(body) },
            onDone: onClose
          })
        }
        onClose={onClose}
      >
        <Autocomplete label="name" data={states.map((state) => state.name)} value={name} onChange={setName} />
        <Segments aria-label="provider" data={[...kinds]} value={provider} onChange={setKind} />
        <LazySelect
          label="status"
          data={[...statuses]}
          value={status}
          allowDeselect={false}
          onChange={(value) => setStatus(statuses.find((one) => one === value) ?? status)}
        />
        <LazySelect
          label="circuit_state"
          description="What you write here; there is no circuit breaker."
          data={[...circuits]}
          value={circuit}
          allowDeselect={false}
          onChange={(value) => setCircuit(circuits.find((one) => one === value) ?? circuit)}
        />
        <TextInput
          label="last_error_code"
          value={reason}
          onChange={({ currentTarget }) => setReason(currentTarget.value)}
        />
        <details>
          <summary>More</summary>
          <EvidenceFields of={evidence} onChange={(part) => setChanged((before) => ({ ...before, ...part }))} />
        </details>
      </FormDrawer>
      {dialog}
    </>
  )
}

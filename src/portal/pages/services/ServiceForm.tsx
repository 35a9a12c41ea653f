import { TextInput } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import { changedOf, partOf } from "../../shared/change/changed.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { errorAt, useSubmit } from "../../shared/change/useSubmit.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { useProjectName } from "../../shared/keys/ProjectPicker.tsx"
import { CostFields } from "./CostFields.tsx"
import { type Fields, fieldsOf, inputOf, shownOf } from "./formFields.ts"
import { IdentityFields } from "./IdentityFields.tsx"
import { ReliabilityFields } from "./ReliabilityFields.tsx"
import { path, readService, type Service, type ServiceInput } from "./service.tsx"

interface Props {
  /** Without one, the form registers a service. */
  readonly service?: Service
  readonly onClose: () => void
  readonly onSaved: (name: string) => void
}

/** Registers a service, or changes one: identity and routing, reliability and credential, prices. */
export const ServiceForm = ({ onClose, onSaved, service }: Props) => {
  // the page behind the form goes on to follow what others change
  const [base] = useState(service)
  const [first] = useState(() => fieldsOf(base))
  const [fields, setFields] = useState<Fields>(first)
  const [name, setName] = useState(service?.name ?? "")
  const { error, isBusy, submit } = useSubmit<Service>()
  const { ask, dialog } = useConfirm<Service>()
  const set = (part: Partial<Fields>) => setFields((before) => ({ ...before, ...part }))
  const changed = changedOf(first, fields)
  const patch = inputOf(changed)
  const tell = useTell()
  // people know a project by its name, which the difference shows
  const formerProject = useProjectName(first.project_id) ?? null
  const nextProject = useProjectName(fields.project_id) ?? null
  const save = () => {
    if (base === undefined) {
      void submit(() => call("POST", "/admin-ui/admin/services", { body: { name, ...patch } }), { refresh: true }).then(
        (saved) => {
          if (saved === undefined) return
          onSaved(saved.name)
          tell({ done: `${saved.name} is registered.`, audit: { type: "service", id: saved.name } })
        }
      )
      return
    }
    const send = (body: ServiceInput, { updated_at }: Service) =>
      call("PATCH", path, { params: { name: base.name }, body: { ...body, expected_updated_at: updated_at } })
    const hidden = "credential" in patch ? { credential: patch.credential === null ? "cleared" : "a new one" } : {}
    ask({
      title: `Change ${base.name}`,
      action: "Change",
      guard: {
        base,
        reread: () => readService(base.name),
        fieldsOf: (version) => ({
          ...shownOf(version),
          ...(version.project_id === first.project_id && { project_id: formerProject })
        }),
        changes: { ...patch, ...("project_id" in patch && { project_id: nextProject }), ...hidden }
      },
      body: "upstream_base_url" in patch && !("credential" in patch) && base.credential_configured && (
        <p>A stored credential belongs to its address: on another scheme, host or port it is removed.</p>
      ),
      run: (version: Service) => send(patch, version),
      ...(!("credential" in patch) && {
        undo: (version: Service, after: Service) =>
          send(inputOf(partOf(fieldsOf(version), Object.keys(changed))), after)
      }),
      done: `${base.name} is changed.`,
      audit: { type: "service", id: base.name },
      onDone: () => onSaved(base.name)
    })
  }
  return (
    <>
      <FormDrawer
        title={service === undefined ? "Register a service" : `Edit ${service.name}`}
        action={service === undefined ? "Register" : "Show the difference"}
        isBusy={isBusy}
        isDisabled={service === undefined ? name === "" : Object.keys(patch).length === 0}
        error={error}
        onSubmit={save}
        onClose={onClose}
      >
        {service === undefined && (
          <TextInput
            label="name"
            description="Lower-case letters, digits and hyphens. It stands in the path of the service."
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
            error={errorAt(error, "name")}
            data-autofocus
          />
        )}
        <IdentityFields fields={fields} set={set} error={error} isRegistered={service !== undefined} />
        <ReliabilityFields
          fields={fields}
          set={set}
          error={error}
          isConfigured={service?.credential_configured === true}
        />
        <CostFields fields={fields} set={set} error={error} />
      </FormDrawer>
      {dialog}
    </>
  )
}

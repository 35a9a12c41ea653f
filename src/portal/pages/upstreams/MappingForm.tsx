import { PasswordInput, Switch } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { KeyPicker } from "../../shared/keys/KeyPicker.tsx"
import { ProjectPicker } from "../../shared/keys/ProjectPicker.tsx"
import { Segments } from "../../shared/page/Segments.tsx"
import { FieldDiff } from "../../shared/words/FieldDiff.tsx"

const scopes = ["key", "project"] as const
const families = ["either", "openai", "anthropic"] as const

const path = "/admin-ui/admin/providers/upstream-credentials"

interface Props {
  /** The mappings that are stored: a key or a project has one at most. */
  readonly stored: ResponseOf<"GET", typeof path>
  readonly onClose: () => void
}

/** Gives a key, or the keys of a project, a credential of their own. It replaces one that they have. */
export const MappingForm = ({ onClose, stored }: Props) => {
  const [scope, setScope] = useState<(typeof scopes)[number]>("project")
  const [target, setTarget] = useState<string>()
  const [credential, setCredential] = useState("")
  const [family, setFamily] = useState<(typeof families)[number]>("either")
  const [project, setProject] = useState<string>()
  const [chosenEnabled, setEnabled] = useState<boolean>()
  const { ask, dialog } = useConfirm()
  const replaced = stored.find((one) => one.scope === scope && one.target_id === target)
  const enabled = chosenEnabled ?? replaced?.enabled ?? true
  const review = () => {
    if (target === undefined) return
    const name = replaced?.target_label ?? (scope === "project" ? (project ?? "the project") : "the key")
    ask({
      title: `Set the credential of ${name}`,
      action: "Set it",
      body: (
        <>
          <FieldDiff
            before={{
              credential: replaced?.credential_configured === true ? "configured" : null,
              enabled: replaced?.enabled
            }}
            after={{ credential: "a new one", enabled }}
          />
          <p>
            {enabled
              ? "Requests carry it from then on, instead of that of the provider."
              : "Requests carry it once somebody enables it."}{" "}
            {replaced !== undefined && "The one that is stored is gone for good: nobody can read it again."}
          </p>
        </>
      ),
      run: () =>
        call("POST", path, {
          body: { scope, target_id: target, credential, enabled, ...(family !== "either" && { family }) }
        }),
      done: `The credential of ${name} is set.`,
      audit: { type: "upstream_credential_mapping", ...(replaced !== undefined && { id: replaced.id }) },
      onDone: onClose
    })
  }
  return (
    <>
      <FormDrawer
        title="Set a credential"
        action="Show the difference"
        isBusy={false}
        isDisabled={target === undefined || credential === ""}
        error={null}
        onSubmit={review}
        onClose={onClose}
      >
        <Segments
          aria-label="scope"
          data={[...scopes]}
          value={scope}
          onChange={(value) => {
            setScope(scopes.find((one) => one === value) ?? scope)
            setTarget(undefined)
          }}
        />
        {scope === "key" ? (
          <KeyPicker value={target} onChange={setTarget} />
        ) : (
          <ProjectPicker
            label="Project"
            value={target ?? null}
            name={project ?? null}
            onChange={(id, name) => {
              setTarget(id ?? undefined)
              setProject(name)
            }}
          />
        )}
        <PasswordInput
          label="credential"
          description="Sealed, never shown again, and sent only to the upstream that is in use now."
          value={credential}
          onChange={({ currentTarget }) => setCredential(currentTarget.value)}
          autoComplete="off"
        />
        <Segments
          aria-label="family"
          data={[...families]}
          value={family}
          onChange={(value) => setFamily(families.find((one) => one === value) ?? family)}
        />
        <span>Needed where each family has an upstream of its own.</span>
        <Switch
          label="enabled: requests carry the credential"
          checked={enabled}
          onChange={({ currentTarget }) => setEnabled(currentTarget.checked)}
        />
      </FormDrawer>
      {dialog}
    </>
  )
}

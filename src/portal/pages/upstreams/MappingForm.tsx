import { PasswordInput, Select } from "@mantine/core"
import { useDebouncedValue } from "@mantine/hooks"
import { useState } from "react"
import { call } from "../../api/control.ts"
import { useApi } from "../../api/queries.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { errorAt, useSubmit } from "../../shared/change/useSubmit.ts"
import { shownText } from "../../shared/foreign/marks.ts"
import { KeyPicker } from "../../shared/keys/KeyPicker.tsx"
import { Segments } from "../../shared/page/Segments.tsx"

const scopes = ["key", "project"] as const
const families = ["either", "openai", "anthropic"] as const

/** Gives a key, or the keys of a project, a credential of their own. It replaces one that they have. */
export const MappingForm = ({ onClose }: { readonly onClose: () => void }) => {
  const [scope, setScope] = useState<(typeof scopes)[number]>("project")
  const [target, setTarget] = useState<string>()
  const [credential, setCredential] = useState("")
  const [family, setFamily] = useState<(typeof families)[number]>("either")
  const [word, setWord] = useState("")
  const [q] = useDebouncedValue(word.trim() === "" ? undefined : word.trim(), 250)
  const projects = useApi("/admin-ui/admin/projects", { query: { q } }, { enabled: scope === "project" })
  const { error, isBusy, submit } = useSubmit<unknown>()
  const save = () => {
    if (target === undefined) return
    void submit(
      () =>
        call("POST", "/admin-ui/admin/providers/upstream-credentials", {
          body: {
            scope,
            target_id: target,
            ...(credential !== "" && { credential }),
            ...(family !== "either" && { family })
          }
        }),
      { refresh: true }
    ).then((saved) => saved !== undefined && onClose())
  }
  return (
    <FormDrawer
      title="Set a credential"
      action="Set"
      isBusy={isBusy}
      isDisabled={target === undefined || credential === ""}
      error={error}
      onSubmit={save}
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
        <KeyPicker value={target} onChange={setTarget} error={errorAt(error, "target_id")} />
      ) : (
        <Select
          label="Project"
          data={(projects.data ?? []).map(({ id, name }) => ({ value: id, label: shownText(name) }))}
          value={target ?? null}
          onChange={(id) => setTarget(id ?? undefined)}
          searchable
          onSearchChange={setWord}
          nothingFoundMessage="None of this name."
          error={errorAt(error, "target_id")}
        />
      )}
      <PasswordInput
        label="credential"
        description="Sealed, never shown again, and sent only to the upstream that is in use now."
        value={credential}
        onChange={({ currentTarget }) => setCredential(currentTarget.value)}
        error={errorAt(error, "credential")}
        autoComplete="off"
      />
      <Segments
        aria-label="family"
        data={[...families]}
        value={family}
        onChange={(value) => setFamily(families.find((one) => one === value) ?? family)}
      />
      <span>{errorAt(error, "family") ?? "Needed where each family has an upstream of its own."}</span>
    </FormDrawer>
  )
}

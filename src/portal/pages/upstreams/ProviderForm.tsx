import { Checkbox, PasswordInput, Stack, Switch, TextInput } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import type { BodyOf, ResponseOf } from "../../api/Endpoints.ts"
import { changedOf, partOf } from "../../shared/change/changed.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { errorAt, useSubmit } from "../../shared/change/useSubmit.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { FieldName } from "../../shared/fields/FieldName.tsx"
import { Segments } from "../../shared/page/Segments.tsx"

type Provider = ResponseOf<"GET", typeof list>[number]

const list = "/admin-ui/admin/providers"
const one = `${list}/:id` as const

const kinds = ["upstream", "internal-service"] as const
const families = ["both", "openai", "anthropic"] as const
const modes = ["authorization_bearer", "custom_header"] as const
const formats = ["raw", "bearer"] as const

const fieldsOf = (provider: Provider | undefined) => ({
  name: provider?.name ?? "",
  base_url: provider?.base_url ?? "",
  family: provider?.family ?? null,
  enabled: provider?.enabled ?? true,
  credential_header_mode: provider?.credential_header_mode ?? ("authorization_bearer" as const),
  credential_header_name: provider?.credential_header_name ?? null,
  credential_header_value_format: provider?.credential_header_value_format ?? ("raw" as const)
})

/** The list needs the scope of the page. A single provider needs another one. */
const reread = async (id: string) => (await call("GET", list, {})).find((one) => one.id === id)

const shownOf = (provider: Provider) => ({
  ...fieldsOf(provider),
  credential: provider.credential_configured ? "configured" : null
})

interface Props {
  readonly provider?: Provider
  readonly onClose: () => void
}

/** Adds a provider, or changes one. Its credential is written, and never read. */
export const ProviderForm = ({ onClose, provider }: Props) => {
  const [first] = useState(() => fieldsOf(provider))
  const [fields, setFields] = useState<ReturnType<typeof fieldsOf>>(first)
  const [kind, setKind] = useState<(typeof kinds)[number]>(provider?.provider ?? "upstream")
  const [credential, setCredential] = useState("")
  const [isCleared, setCleared] = useState(false)
  const { error, isBusy, submit } = useSubmit<Provider>()
  const { ask, dialog } = useConfirm<Provider>()
  const set = (part: Partial<typeof fields>) => setFields((before) => ({ ...before, ...part }))
  const secret = { ...(credential !== "" ? { credential } : isCleared ? { credential: null } : {}) }
  const changed = changedOf(first, fields)
  const patch = { ...changed, ...secret }
  const tell = useTell()

  const save = () => {
    if (provider === undefined) {
      void submit(() => call("POST", list, { body: { provider: kind, ...fields, ...secret } }), {
        refresh: true
      }).then((saved) => {
        if (saved === undefined) return
        onClose()
        tell({ done: `${saved.name} is added.`, audit: { type: "provider", id: saved.id } })
      })
      return
    }
    const send = (body: BodyOf<"PATCH", typeof one>, { updated_at }: Provider) =>
      call("PATCH", one, { params: { id: provider.id }, body: { ...body, expected_updated_at: updated_at } })
    const isMoved = fields.base_url !== first.base_url && credential === "" && provider.credential_configured
    ask({
      title: `Change ${provider.name}`,
      action: "Change",
      guard: {
        base: provider,
        reread: () => reread(provider.id),
        fieldsOf: shownOf,
        changes: {
          ...patch,
          ...("credential" in patch && { credential: credential === "" ? "cleared" : "a new one" })
        }
      },
      body: isMoved && (
        <p>A stored credential belongs to its address: on another scheme, host or port it is removed.</p>
      ),
      run: (version: Provider) => send(patch, version),
      ...(!("credential" in patch) && {
        undo: (version: Provider, after: Provider) => send(partOf(fieldsOf(version), Object.keys(changed)), after)
      }),
      done: `${provider.name} is changed.`,
      audit: { type: "provider", id: provider.id },
      onDone: onClose
    })
  }
  return (
    <>
      <FormDrawer
        title={provider === undefined ? "Add a provider" : `Edit ${provider.name}`}
        action={provider === undefined ? "Add" : "Show the difference"}
        isBusy={isBusy}
        isDisabled={provider !== undefined && Object.keys(patch).length === 0}
        error={error}
        onSubmit={save}
        onClose={onClose}
      >
        {provider === undefined && (
          <Segments
            aria-label="provider"
            data={[...kinds]}
            value={kind}
            onChange={(value) => setKind(kinds.find((one) => one === value) ?? kind)}
          />
        )}
        <TextInput
          label="name"
          value={fields.name}
          onChange={({ currentTarget }) => set({ name: currentTarget.value })}
          error={errorAt(error, "name")}
          data-autofocus
        />
        <TextInput
          label={<FieldName name="base_url" />}
          description="The base URL that the vendor documents for its SDKs."
          placeholder="https://api.openai.com/v1"
          value={fields.base_url}
          onChange={({ currentTarget }) => set({ base_url: currentTarget.value })}
          error={errorAt(error, "base_url")}
        />
        {kind === "upstream" && (
          <Stack gap={3}>
            <Segments
              aria-label="family"
              data={[...families]}
              value={fields.family ?? "both"}
              onChange={(value) => set({ family: value === "openai" || value === "anthropic" ? value : null })}
            />
            <span>The requests that go there: those of the OpenAI protocol, of the Anthropic protocol, or both.</span>
          </Stack>
        )}
        <PasswordInput
          label="credential"
          description={
            provider?.credential_configured === true
              ? "One is configured. A new one replaces it."
              : "Sealed, never shown again, and sent to this address only."
          }
          value={credential}
          onChange={({ currentTarget }) => setCredential(currentTarget.value)}
          error={errorAt(error, "credential")}
          autoComplete="off"
        />
        {provider?.credential_configured === true && (
          <Checkbox
            label="Clear the credential that is configured"
            checked={isCleared}
            onChange={({ currentTarget }) => setCleared(currentTarget.checked)}
          />
        )}
        <Segments
          aria-label="credential_header_mode"
          data={[...modes]}
          value={fields.credential_header_mode}
          onChange={(value) =>
            set({ credential_header_mode: modes.find((one) => one === value) ?? fields.credential_header_mode })
          }
        />
        {fields.credential_header_mode === "custom_header" && (
          <>
            <TextInput
              label="credential_header_name"
              placeholder="x-api-key"
              value={fields.credential_header_name ?? ""}
              onChange={({ currentTarget }) =>
                set({ credential_header_name: currentTarget.value === "" ? null : currentTarget.value })
              }
              error={errorAt(error, "credential_header_name")}
            />
            <Segments
              aria-label="credential_header_value_format"
              data={[...formats]}
              value={fields.credential_header_value_format}
              onChange={(value) =>
                set({ credential_header_value_format: formats.find((one) => one === value) ?? "raw" })
              }
            />
          </>
        )}
        <Switch
          label="enabled"
          checked={fields.enabled}
          onChange={({ currentTarget }) => set({ enabled: currentTarget.checked })}
        />
      </FormDrawer>
      {dialog}
    </>
  )
}

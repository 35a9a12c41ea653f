import { Checkbox, NumberInput, PasswordInput, Stack, Switch, TagsInput, TextInput } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import { useAllowed } from "../../api/session.ts"
import { changedOf, partOf } from "../../shared/change/changed.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { type FlatSettings, type FrontDoorPatch, type FrontDoorSettings, flat, path } from "./frontDoor.ts"

const texts = ["tenant_id", "audience", "required_scope", "required_role"] as const
/** Whoever sets these decides whose identities the gateway believes, so the server wants all scopes. */
const sensitive = ["issuer", "oidc_discovery_url"] as const
const lists = ["allowed_groups", "accepted_algorithms"] as const
const numbers = ["jwks_cache_ttl_seconds", "clock_skew_seconds"] as const

export const FrontDoorForm = ({
  onClose,
  settings
}: {
  readonly settings: FrontDoorSettings
  readonly onClose: () => void
}) => {
  // the page behind the form goes on to follow what others change
  const [base] = useState(settings)
  const first = flat(base)
  const [fields, setFields] = useState<FlatSettings>(first)
  const [secret, setSecret] = useState("")
  const [isCleared, setCleared] = useState(false)
  const hasAllScopes = useAllowed("*")
  const { ask, dialog } = useConfirm<FrontDoorSettings>()
  const set = (part: object) => setFields((before) => ({ ...before, ...part }))
  const changed = changedOf(first, fields)
  const patch: FrontDoorPatch = {
    ...changed,
    ...(secret !== ""
      ? { trusted_gateway_header_secret: secret }
      : isCleared
        ? { trusted_gateway_header_secret: null }
        : {})
  }
  const names = Object.keys(patch)
  const isSecretOfEnvironment = settings.source === "environment" && settings.trusted_gateway.secret_configured
  const send = (body: FrontDoorPatch, { updated_at }: FrontDoorSettings) =>
    call("PATCH", path, { body: { ...body, expected_updated_at: updated_at } })
  const save = () =>
    ask({
      title: "Change the identities of callers",
      action: "Change",
      guard: {
        base,
        reread: () => call("GET", path, {}),
        fieldsOf: shownOf,
        changes: {
          ...patch,
          ...("trusted_gateway_header_secret" in patch && {
            trusted_gateway_header_secret: secret === "" ? "cleared" : "a new one"
          })
        }
      },
      body: (
        <Stack gap="xs">
          {base.source === "environment" && (
            <p>All settings are stored by this, and those of the environment no longer apply.</p>
          )}
          <p>It holds for the next request. Callers whose identity it no longer accepts are refused.</p>
        </Stack>
      ),
      run: (version: FrontDoorSettings) => send(patch, version),
      // what is stored cannot be what the environment says again
      ...(base.source !== "environment" &&
        !("trusted_gateway_header_secret" in patch) && {
          undo: (version: FrontDoorSettings, after: FrontDoorSettings) =>
            send(partOf(flat(version), Object.keys(changed)), after)
        }),
      done: "The identities of callers are changed.",
      audit: { type: "gateway_auth_settings" },
      onDone: onClose
    })
  return (
    <>
      <FormDrawer
        title="Identities of callers"
        action="Show the difference"
        isBusy={false}
        isDisabled={names.length === 0}
        error={null}
        onSubmit={save}
        onClose={onClose}
      >
        <TextInput
          label="svc_key_header"
          description="The header with the gateway key, where authorization has the identity."
          value={fields.svc_key_header ?? ""}
          onChange={({ currentTarget }) => set({ svc_key_header: currentTarget.value })}
          data-autofocus
        />
        <Switch
          label="identity_enabled: requests must carry a token of the identity provider"
          checked={fields.identity_enabled}
          onChange={({ currentTarget }) => set({ identity_enabled: currentTarget.checked })}
        />
        {sensitive.map((name) => (
          <TextInput
            key={name}
            label={name}
            value={fields[name] ?? ""}
            readOnly={!hasAllScopes}
            {...(!hasAllScopes && { description: "Changing it needs the scope *." })}
            onChange={({ currentTarget }) => set({ [name]: textOrNull(currentTarget.value) })}
          />
        ))}
        {texts.map((name) => (
          <TextInput
            key={name}
            label={name}
            value={fields[name] ?? ""}
            onChange={({ currentTarget }) => set({ [name]: textOrNull(currentTarget.value) })}
          />
        ))}
        {lists.map((name) => (
          <TagsInput key={name} label={name} value={[...fields[name]]} onChange={(values) => set({ [name]: values })} />
        ))}
        {numbers.map((name) => (
          <NumberInput
            key={name}
            label={name}
            value={fields[name]}
            min={0}
            onChange={(value) => typeof value === "number" && set({ [name]: value })}
          />
        ))}
        <Switch
          label="trusted_gateway_header_enabled: headers of a gateway in front tell who calls"
          checked={fields.trusted_gateway_header_enabled}
          onChange={({ currentTarget }) => set({ trusted_gateway_header_enabled: currentTarget.checked })}
        />
        {hasAllScopes && (
          <>
            <PasswordInput
              label="trusted_gateway_header_secret"
              description={
                isSecretOfEnvironment
                  ? "The one of the environment is not copied: enter it again."
                  : settings.trusted_gateway.secret_configured
                    ? "One is configured. A new one replaces it."
                    : "Never shown again."
              }
              value={secret}
              onChange={({ currentTarget }) => setSecret(currentTarget.value)}
              autoComplete="off"
            />
            {settings.trusted_gateway.secret_configured && (
              <Checkbox
                label="Clear the secret that is configured"
                checked={isCleared}
                onChange={({ currentTarget }) => setCleared(currentTarget.checked)}
              />
            )}
          </>
        )}
      </FormDrawer>
      {dialog}
    </>
  )
}

const shownOf = (settings: FrontDoorSettings) => ({
  ...flat(settings),
  trusted_gateway_header_secret: settings.trusted_gateway.secret_configured ? "configured" : null
})

const textOrNull = (text: string): string | null => (text === "" ? null : text)

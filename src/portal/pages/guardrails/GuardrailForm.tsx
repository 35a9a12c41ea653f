import { Checkbox, Group, NumberInput, PasswordInput, Stack, Switch, Textarea, TextInput } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import type { BodyOf } from "../../api/Endpoints.ts"
import { changedOf, objectOf, partOf } from "../../shared/change/changed.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { errorAt, useSubmit } from "../../shared/change/useSubmit.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { JsonEditor } from "../../shared/editor/JsonEditor.tsx"
import { FieldName } from "../../shared/fields/FieldName.tsx"
import { Segments } from "../../shared/page/Segments.tsx"
import { prettyOf } from "../../shared/words/format.ts"
import { CoverageSentence } from "./Coverage.tsx"
import { failureSentences, type Guardrail } from "./words/words.tsx"

const path = "/admin-ui/admin/guardrails/:name"
type Patch = BodyOf<"PATCH", typeof path>
const modes = ["pre_call", "post_call", "during_call"] as const
const policies = ["fail_closed", "fail_open", "dry_run"] as const

interface Props {
  /** Without one, the form adds an HTTP guardrail. */
  readonly guardrail?: Guardrail
  readonly onClose: () => void
  readonly onSaved: (name: string) => void
}

interface Fields {
  readonly endpoint_url: string
  readonly description: string
  readonly modes: ReadonlyArray<(typeof modes)[number]>
  readonly default_on: boolean
  readonly failure_policy: (typeof policies)[number]
  readonly timeout_ms: number | null
  readonly stream_mode: "buffer" | "window"
  readonly window_chars: number | null
  readonly runtime_config: Guardrail["runtime_config"]
}

const fieldsOf = (guardrail: Guardrail | undefined): Fields => ({
  endpoint_url: guardrail?.endpoint_url ?? "",
  description: guardrail?.description ?? "",
  modes: guardrail?.modes ?? ["pre_call", "post_call"],
  default_on: guardrail?.default_on ?? false,
  failure_policy: guardrail?.failure_policy ?? "fail_closed",
  timeout_ms: guardrail?.timeout_ms ?? null,
  stream_mode: guardrail?.stream_mode ?? "buffer",
  window_chars: guardrail?.window_chars ?? null,
  runtime_config: guardrail?.runtime_config ?? {}
})

/** The API cannot take a number back: an empty field leaves it as it is. */
const patchOf = ({ timeout_ms, window_chars, ...rest }: Partial<Fields>): Patch => ({
  ...rest,
  ...(typeof timeout_ms === "number" && { timeout_ms }),
  ...(typeof window_chars === "number" && { window_chars })
})

/** The settings of a guardrail in a difference. A secret is never shown. */
const shownOf = (guardrail: Guardrail) => ({
  ...fieldsOf(guardrail),
  bearer_token: guardrail.token_configured ? "configured" : null,
  enabled: guardrail.enabled
})

/** Adds an HTTP guardrail, or changes one. A built-in guardrail has fewer settings. */
export const GuardrailForm = ({ guardrail, onClose, onSaved }: Props) => {
  // the page behind the form goes on to follow what others change
  const [base] = useState(guardrail)
  const [first] = useState(() => fieldsOf(base))
  const [fields, setFields] = useState(first)
  const [name, setName] = useState(guardrail?.name ?? "")
  const [token, setToken] = useState("")
  const [isTokenCleared, setTokenCleared] = useState(false)
  const [config, setConfig] = useState(() => prettyOf(first.runtime_config))
  const { error, isBusy, submit } = useSubmit<Guardrail>()
  const { ask, dialog } = useConfirm<Guardrail>()
  const tell = useTell()
  const isHttp = guardrail?.provider_kind !== "built_in"
  const runtimeConfig = objectOf(config)
  const set = (part: Partial<Fields>) => setFields((before) => ({ ...before, ...part }))

  const changed = patchOf(changedOf(first, { ...fields, runtime_config: runtimeConfig ?? first.runtime_config }))
  const patch: Patch = {
    ...changed,
    ...(token !== "" && { bearer_token: token }),
    ...(isTokenCleared && token === "" && { bearer_token: null })
  }
  const shown = { ...patch, ...("bearer_token" in patch && { bearer_token: token === "" ? "cleared" : "a new one" }) }

  const save = () => {
    if (base === undefined) {
      const { runtime_config: _, timeout_ms, window_chars, ...rest } = fields
      void submit(
        () =>
          call("POST", "/admin-ui/admin/guardrails", {
            body: {
              name,
              ...rest,
              runtime_config: runtimeConfig ?? {},
              ...(timeout_ms !== null && { timeout_ms }),
              ...(window_chars !== null && { window_chars }),
              ...(token !== "" && { bearer_token: token })
            }
          }),
        { refresh: true }
      ).then((saved) => {
        if (saved === undefined) return
        onSaved(saved.name)
        tell({ done: `${saved.name} is added.`, audit: { type: "guardrail", id: saved.name } })
      })
      return
    }
    const send = (body: Patch, { updated_at }: Guardrail) =>
      call("PATCH", path, { params: { name: base.name }, body: { ...body, expected_updated_at: updated_at } })
    ask({
      title: `Change ${base.name}`,
      action: "Change",
      guard: {
        base,
        reread: () => call("GET", path, { params: { name: base.name } }),
        fieldsOf: shownOf,
        changes: shown
      },
      body: <CoverageSentence name={base.name} />,
      run: (version: Guardrail) => send(patch, version),
      ...(!("bearer_token" in patch) && {
        undo: (version: Guardrail, after: Guardrail) =>
          send(patchOf(partOf(fieldsOf(version), Object.keys(changed))), after)
      }),
      done: `${base.name} is changed.`,
      audit: { type: "guardrail", id: base.name },
      onDone: () => onSaved(base.name)
    })
  }

  return (
    <>
      <FormDrawer
        title={guardrail === undefined ? "Add a guardrail" : `Edit ${guardrail.name}`}
        action={guardrail === undefined ? "Add" : "Show the difference"}
        isBusy={isBusy}
        isDisabled={runtimeConfig === undefined || (guardrail !== undefined && Object.keys(patch).length === 0)}
        error={error}
        onSubmit={save}
        onClose={onClose}
      >
        {guardrail === undefined && (
          <TextInput
            label="Name"
            description="Policies select it by this name."
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
            error={errorAt(error, "name")}
            data-autofocus
          />
        )}
        {isHttp && (
          <>
            <TextInput
              label={<FieldName name="endpoint_url" />}
              description="The gateway posts each text to this address and follows the answer."
              placeholder="https://guard.example.com/check"
              value={fields.endpoint_url}
              onChange={({ currentTarget }) => set({ endpoint_url: currentTarget.value })}
              error={errorAt(error, "endpoint_url")}
            />
            <Textarea
              label="description"
              value={fields.description}
              onChange={({ currentTarget }) => set({ description: currentTarget.value })}
              error={errorAt(error, "description")}
              autosize
            />
            <PasswordInput
              label="bearer_token"
              description={
                guardrail?.token_configured === true
                  ? "One is configured. A new one replaces it."
                  : "Sent to the guardrail; never shown again."
              }
              value={token}
              onChange={({ currentTarget }) => setToken(currentTarget.value)}
              error={errorAt(error, "bearer_token")}
              autoComplete="off"
            />
            {guardrail?.token_configured === true && (
              <Checkbox
                label="Clear the token that is configured"
                checked={isTokenCleared}
                onChange={({ currentTarget }) => setTokenCleared(currentTarget.checked)}
              />
            )}
          </>
        )}
        <Checkbox.Group
          label="modes"
          value={[...fields.modes]}
          onChange={(value) => set({ modes: modes.filter((mode) => value.includes(mode)) })}
          error={errorAt(error, "modes")}
        >
          <Group mt={4}>
            {modes.map((mode) => (
              <Checkbox key={mode} value={mode} label={mode} />
            ))}
          </Group>
        </Checkbox.Group>
        <Stack gap={3}>
          <Segments
            aria-label="failure_policy"
            data={[...policies]}
            value={fields.failure_policy}
            onChange={(failure_policy) => set({ failure_policy })}
          />
          <span>{failureSentences[fields.failure_policy]}</span>
        </Stack>
        <Switch
          label="On by default: every request passes it, unless a policy forbids it"
          checked={fields.default_on}
          onChange={({ currentTarget }) => set({ default_on: currentTarget.checked })}
        />
        {isHttp && (
          <Group grow align="start">
            <NumberInput
              label="timeout_ms"
              value={fields.timeout_ms ?? ""}
              placeholder={`${first.timeout_ms ?? "as the server sets it"}`}
              onChange={(value) => set({ timeout_ms: numberOf(value) })}
              error={errorAt(error, "timeout_ms")}
            />
            <Stack gap={2}>
              <span>stream_mode</span>
              <Segments
                aria-label="stream_mode"
                data={["buffer", "window"]}
                value={fields.stream_mode}
                onChange={(stream_mode) => set({ stream_mode })}
              />
            </Stack>
            {fields.stream_mode === "window" && (
              <NumberInput
                label="window_chars"
                value={fields.window_chars ?? ""}
                placeholder={`${first.window_chars ?? "as the server sets it"}`}
                onChange={(value) => set({ window_chars: numberOf(value) })}
                error={errorAt(error, "window_chars")}
              />
            )}
          </Group>
        )}
        <JsonEditor
          label="runtime_config"
          description="Everyone who sees the configuration sees it: no secrets."
          value={config}
          onChange={setConfig}
          error={errorAt(error, "runtime_config")}
          height={150}
        />
      </FormDrawer>
      {dialog}
    </>
  )
}

const numberOf = (value: string | number): number | null => (typeof value === "number" ? value : null)

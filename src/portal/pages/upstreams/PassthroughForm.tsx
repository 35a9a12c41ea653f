import { Group, NumberInput, Switch, TagsInput } from "@mantine/core"
import { useState } from "react"
import { changedOf, partOf } from "../../shared/change/changed.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { FieldName } from "../../shared/fields/FieldName.tsx"
import { LazySelect } from "../../shared/fields/LazySelect.tsx"
import { Exposure } from "./Exposure.tsx"
import { readSettings, type Settings, type SettingsPatch, saveSettings } from "./passthroughSettings.ts"

const choices = [
  {
    name: "ui_exposure",
    values: ["disabled", "operator_only", "explicitly_exposed", "trusted_ingress"],
    help: "Who may see the upstream’s UI through the proxy listener."
  },
  {
    name: "admin_api_exposure",
    values: ["disabled", "operator_only", "explicitly_exposed"],
    help: "Who may call the upstream’s administration."
  },
  {
    name: "guardrails",
    values: ["refuse", "skip"],
    help: "What happens to keys with guardrails, which cannot check these requests."
  },
  {
    name: "body_policies",
    values: ["refuse", "skip"],
    help: "What happens to keys whose policy depends on bodies, which are not read."
  },
  {
    name: "ownership",
    values: ["project", "key", "shared"],
    help: "Which keys may use the files, batches and responses that a key created."
  }
] as const

const fieldsOf = ({ updated_at: _, ...fields }: Settings) => fields

const numbers = ["timeout_ms", "max_request_body_bytes", "max_response_body_bytes"] as const

export const PassthroughForm = ({
  onClose,
  settings
}: {
  readonly settings: Settings
  readonly onClose: () => void
}) => {
  // the page behind the form goes on to follow what others change
  const [base] = useState(settings)
  const [first] = useState(() => fieldsOf(settings))
  const [fields, setFields] = useState(first)
  const { ask, dialog } = useConfirm<Settings>()
  const set = (part: object) => setFields((before) => ({ ...before, ...part }))
  const patch: SettingsPatch = changedOf(first, fields)
  const names = Object.keys(patch)
  return (
    <>
      <FormDrawer
        title="Wildcard"
        action="Show the difference"
        isBusy={false}
        isDisabled={names.length === 0}
        error={null}
        onSubmit={() =>
          ask({
            title: "Change the wildcard",
            action: "Change",
            guard: { base, reread: readSettings, fieldsOf, changes: patch },
            body: fields.enabled && <Exposure of={fields} />,
            run: ({ updated_at }) => saveSettings({ ...patch, expected_updated_at: updated_at }),
            undo: (version, { updated_at }) =>
              saveSettings({ ...partOf(fieldsOf(version), names), expected_updated_at: updated_at }),
            done: "The wildcard is changed.",
            audit: { type: "upstream_passthrough_settings" },
            onDone: onClose
          })
        }
        onClose={onClose}
      >
        <Switch
          label="enabled: requests that match no route go to the upstream"
          checked={fields.enabled}
          onChange={({ currentTarget }) => set({ enabled: currentTarget.checked })}
        />
        <TagsInput
          label="allowed_paths"
          description="A * at the end matches any suffix."
          value={[...fields.allowed_paths]}
          onChange={(allowed_paths) => set({ allowed_paths })}
        />
        <TagsInput
          label={<FieldName name="allowed_methods" />}
          value={[...fields.allowed_methods]}
          onChange={(allowed_methods) => set({ allowed_methods })}
        />
        {choices.map(({ help, name, values }) => (
          <LazySelect
            key={name}
            label={name}
            description={help}
            data={[...new Set([...values, fields[name]])]}
            value={fields[name]}
            allowDeselect={false}
            onChange={(value) => value !== null && set({ [name]: value })}
          />
        ))}
        <Group grow align="end">
          {numbers.map((name) => (
            <NumberInput
              key={name}
              label={name}
              value={fields[name]}
              min={1}
              onChange={(value) => typeof value === "number" && set({ [name]: value })}
            />
          ))}
        </Group>
        <Switch
          label="limits_streams: max_response_body_bytes cuts event streams too"
          checked={fields.limits_streams}
          onChange={({ currentTarget }) => set({ limits_streams: currentTarget.checked })}
        />
      </FormDrawer>
      {dialog}
    </>
  )
}

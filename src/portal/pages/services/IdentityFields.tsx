import { MultiSelect, Stack, TextInput } from "@mantine/core"
import { errorAt } from "../../shared/change/useSubmit.ts"
import { FieldName } from "../../shared/fields/FieldName.tsx"
import { LazySelect } from "../../shared/fields/LazySelect.tsx"
import { ProjectPicker } from "../../shared/keys/ProjectPicker.tsx"
import type { FieldsProps } from "./formFields.ts"
import styles from "./Services.module.css"

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const

const statuses = ["local", "synced", "incomplete", "stale", "failed"] as const

interface Props extends FieldsProps {
  readonly isRegistered: boolean
}

export const IdentityFields = ({ error, fields, isRegistered, set }: Props) => (
  <fieldset className={styles.section}>
    <legend>Identity and routing</legend>
    <Stack gap="sm">
      <TextInput
        label={<FieldName name="upstream_base_url" />}
        description="Where the service is. Requests are refused until it is set."
        placeholder="https://search.example.com"
        value={fields.upstream_base_url}
        onChange={({ currentTarget }) => set({ upstream_base_url: currentTarget.value })}
        error={errorAt(error, "upstream_base_url")}
      />
      <TextInput
        label={<FieldName name="route_pattern" />}
        description="The path at the gateway; /* at its end takes everything below. Empty: /services/<name>/*"
        value={fields.route_pattern}
        onChange={({ currentTarget }) => set({ route_pattern: currentTarget.value })}
        error={errorAt(error, "route_pattern")}
      />
      <MultiSelect
        label={<FieldName name="allowed_methods" />}
        description="Empty: as the server sets it."
        data={[...methods]}
        value={[...fields.allowed_methods]}
        onChange={(values) => set({ allowed_methods: methods.filter((method) => values.includes(method)) })}
        error={errorAt(error, "allowed_methods")}
      />
      <ProjectPicker
        label="Project"
        description="A project cannot be deleted while a service belongs to it."
        value={fields.project_id}
        onChange={(project_id) => set({ project_id })}
        error={errorAt(error, "project_id")}
        clearable
      />
      {isRegistered && (
        <LazySelect
          label="sync_status"
          description="How the service compares with the list that it was imported from. Imports set it, and requests do not depend on it."
          data={[...statuses]}
          value={fields.sync_status}
          allowDeselect={false}
          onChange={(value) => set({ sync_status: statuses.find((one) => one === value) ?? fields.sync_status })}
          error={errorAt(error, "sync_status")}
        />
      )}
    </Stack>
  </fieldset>
)

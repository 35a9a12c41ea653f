import { Checkbox, Group, NumberInput, PasswordInput, Stack, TagsInput, TextInput } from "@mantine/core"
import { errorAt } from "../../shared/change/useSubmit.ts"
import { Segments } from "../../shared/page/Segments.tsx"
import { type FieldsProps, numberOf } from "./formFields.ts"
import styles from "./Services.module.css"

interface Props extends FieldsProps {
  readonly isConfigured: boolean
}

export const ReliabilityFields = ({ error, fields, isConfigured, set }: Props) => (
  <fieldset className={styles.section}>
    <legend>Reliability and credential</legend>
    <Stack gap="sm">
      <PasswordInput
        label="credential"
        description={
          isConfigured
            ? "One is configured. A new one replaces it."
            : "Sent to the service; never shown again. Requests are refused until it is set."
        }
        value={fields.credential}
        onChange={({ currentTarget }) => set({ credential: currentTarget.value })}
        error={errorAt(error, "credential")}
        autoComplete="off"
      />
      {isConfigured && (
        <Checkbox
          label="Clear the credential that is configured"
          checked={fields.isCredentialCleared}
          onChange={({ currentTarget }) => set({ isCredentialCleared: currentTarget.checked })}
        />
      )}
      <Group align="end" grow>
        <TextInput
          label="health_check_path"
          placeholder="/"
          value={fields.health_check_path}
          onChange={({ currentTarget }) => set({ health_check_path: currentTarget.value })}
          error={errorAt(error, "health_check_path")}
        />
        <Segments
          aria-label="health_check_method"
          data={["GET", "HEAD"]}
          value={fields.health_check_method}
          onChange={(health_check_method) => set({ health_check_method })}
        />
      </Group>
      <Group grow align="start">
        <NumberInput
          label="timeout_ms"
          placeholder="as the server sets it"
          value={fields.timeout_ms ?? ""}
          onChange={(value) => set({ timeout_ms: numberOf(value) })}
          error={errorAt(error, "timeout_ms")}
        />
        <NumberInput
          label="max_body_bytes"
          placeholder="as the server sets it"
          value={fields.max_body_bytes ?? ""}
          onChange={(value) => set({ max_body_bytes: numberOf(value) })}
          error={errorAt(error, "max_body_bytes")}
        />
      </Group>
      <TagsInput
        label="fallback_services"
        description="Stored for clients to read; the gateway does not act on it."
        value={[...fields.fallback_services]}
        onChange={(fallback_services) => set({ fallback_services })}
        error={errorAt(error, "fallback_services")}
      />
    </Stack>
  </fieldset>
)

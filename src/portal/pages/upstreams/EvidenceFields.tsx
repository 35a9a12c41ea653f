import { Group, NumberInput, Stack } from "@mantine/core"
import type { BodyOf } from "../../api/Endpoints.ts"
import { TimeInput } from "../../shared/dialogs/TimeInput.tsx"
import { Segments } from "../../shared/page/Segments.tsx"

type NewState = BodyOf<"POST", "/admin-ui/admin/provider-health/state">

/** A state rests on these findings. Only checks and operators write them. */
export interface Evidence {
  readonly active_check_ok: boolean | null
  readonly consecutive_failures: number
  readonly passive_success_count: number
  readonly passive_failure_count: number
  readonly cooldown_until: string | null
}

export const evidenceOf = (state: Partial<NewState> | undefined): Evidence => ({
  active_check_ok: state?.active_check_ok ?? null,
  consecutive_failures: state?.consecutive_failures ?? 0,
  passive_success_count: state?.passive_success_count ?? 0,
  passive_failure_count: state?.passive_failure_count ?? 0,
  cooldown_until: state?.cooldown_until ?? null
})

const counts = ["consecutive_failures", "passive_success_count", "passive_failure_count"] as const
const outcomes = [
  { value: "null", label: "not checked" },
  { value: "true", label: "passed" },
  { value: "false", label: "failed" }
] as const

interface Props {
  readonly of: Evidence
  readonly onChange: (part: Partial<Evidence>) => void
}

export const EvidenceFields = ({ of, onChange }: Props) => (
  <Stack gap="sm" mt="xs">
    <Stack gap={3}>
      <Segments
        aria-label="active_check_ok"
        data={[...outcomes]}
        value={String(of.active_check_ok)}
        onChange={(value) => onChange({ active_check_ok: value === "null" ? null : value === "true" })}
      />
      <span>
        <code>active_check_ok</code>: how the last check ended.
      </span>
    </Stack>
    <Group grow align="end">
      {counts.map((name) => (
        <NumberInput
          key={name}
          label={name}
          value={of[name]}
          min={0}
          allowDecimal={false}
          onChange={(value) => typeof value === "number" && onChange({ [name]: value })}
        />
      ))}
    </Group>
    <TimeInput
      label="cooldown_until"
      description="It informs people. The gateway does not wait for it."
      value={of.cooldown_until}
      onChange={(cooldown_until) => onChange({ cooldown_until })}
    />
  </Stack>
)

import { Autocomplete, Group, NumberInput, Stack, TextInput } from "@mantine/core"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { LazySelect } from "../../../shared/fields/LazySelect.tsx"
import { GuardrailForm } from "../../../shared/policy/GuardrailForm.tsx"
import { amounts, type More, providers } from "./request.ts"

interface Props {
  readonly more: More
  readonly onChange: (more: More) => void
}

const help: Readonly<Record<(typeof amounts)[number], string>> = {
  request_body_bytes: "Empty: of the body above.",
  response_body_bytes: "Empty: its size is not checked.",
  estimated_cost_usd: "Empty: by the model’s price."
}

/** The inputs of a simulation that a request seldom needs. The server finds those that are empty by itself. */
export const MoreFields = ({ more, onChange }: Props) => {
  const maySeeServices = useAllowed("usage:read")
  const presets = useApi("/admin-ui/admin/policy/presets", {})
  const services = useApi("/admin-ui/admin/services", {}, { enabled: maySeeServices })
  /** An input that is empty leaves the request. */
  const set = <Name extends keyof More>(name: Name, value: More[Name] | undefined) => {
    const { [name]: _, ...others } = more
    onChange(value === undefined || value === "" ? others : { ...others, [name]: value })
  }
  return (
    <Stack gap="sm" mt="xs">
      <TextInput
        label="team_id"
        description="The policy layer of this team applies too."
        value={more.team_id ?? ""}
        onChange={({ currentTarget }) => set("team_id", currentTarget.value)}
      />
      <LazySelect
        label="preset"
        description="It takes the place of the key’s policy."
        data={(presets.data ?? []).map(({ name }) => name)}
        value={more.preset ?? null}
        onChange={(value) => set("preset", presets.data?.find(({ name }) => name === value)?.name)}
        error={presets.error?.message}
        clearable
      />
      <Group grow align="start">
        <LazySelect
          label="provider"
          description="Empty: as the path says."
          data={[...providers]}
          value={more.provider ?? null}
          onChange={(value) =>
            set(
              "provider",
              providers.find((one) => one === value)
            )
          }
          clearable
        />
        <Autocomplete
          label="service_name"
          description="Empty: as the path says."
          data={services.data?.map(({ name }) => name) ?? []}
          value={more.service_name ?? ""}
          onChange={(value) => set("service_name", value)}
        />
      </Group>
      <Group grow align="start">
        {amounts.map((name) => (
          <NumberInput
            key={name}
            label={name}
            description={help[name]}
            value={more[name] ?? ""}
            min={0}
            allowDecimal={name === "estimated_cost_usd"}
            onChange={(value) => set(name, typeof value === "number" ? value : undefined)}
          />
        ))}
      </Group>
      <span>Guardrails in place of those of the key. A list without any leaves the key’s.</span>
      <GuardrailForm values={more.guardrails ?? {}} onChange={(guardrails) => set("guardrails", guardrails)} />
    </Stack>
  )
}

import { ActionIcon, Button, Group, NumberInput, Stack, TextInput } from "@mantine/core"
import { IconTrash } from "@tabler/icons-react"
import { errorAt } from "../../shared/change/useSubmit.ts"
import { LazySelect } from "../../shared/fields/LazySelect.tsx"
import { Segments } from "../../shared/page/Segments.tsx"
import { type FieldsProps, numberOf } from "./formFields.ts"
import styles from "./Services.module.css"
import type { Service } from "./service.tsx"

type Rule = Service["pricing_rules"][number]
const modes = ["none", "fixed", "passthrough"] as const

const sentences = {
  none: "Requests cost nothing.",
  fixed: "Every request costs the same.",
  passthrough: "A request costs what its response reports. The estimate is reserved before."
} as const

const emptyRule: Rule = { name: null, json_pointer: "/", equals: "", cost_mode: "fixed", estimated_cost_usd: null }

export const CostFields = ({ error, fields, set }: FieldsProps) => {
  const { cost_mode, estimated_cost_usd, pricing_rules } = fields
  const change = (place: number, part: Partial<Rule>) =>
    set({ pricing_rules: pricing_rules.map((rule, at) => (at === place ? { ...rule, ...part } : rule)) })
  return (
    <fieldset className={styles.section}>
      <legend>Prices</legend>
      <Stack gap="sm">
        <Segments
          aria-label="cost_mode"
          data={[...modes]}
          value={cost_mode}
          onChange={(mode) => set({ cost_mode: mode })}
        />
        <span>{sentences[cost_mode]}</span>
        {cost_mode !== "none" && (
          <NumberInput
            label="estimated_cost_usd"
            value={estimated_cost_usd ?? ""}
            onChange={(value) => set({ estimated_cost_usd: numberOf(value) })}
            error={errorAt(error, "estimated_cost_usd")}
            min={0}
            prefix="$"
          />
        )}
        {pricing_rules.map((rule, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: rules have no identity but their place
          <Group key={place} align="end" gap="xs" role="group" aria-label={`Rule ${place + 1}`}>
            <TextInput
              label="name"
              description="Usage records name the rule by it."
              w="100%"
              value={rule.name ?? ""}
              onChange={({ currentTarget }) => change(place, { name: currentTarget.value || null })}
            />
            <TextInput
              label="json_pointer"
              placeholder="/mode"
              w={120}
              value={rule.json_pointer}
              onChange={({ currentTarget }) => change(place, { json_pointer: currentTarget.value })}
              error={errorAt(error, `pricing_rules[${place}]`)}
            />
            <TextInput
              label="equals"
              placeholder="deep"
              w={110}
              value={rule.equals}
              onChange={({ currentTarget }) => change(place, { equals: currentTarget.value })}
            />
            <LazySelect
              label="cost_mode"
              w={120}
              data={[...modes]}
              value={rule.cost_mode}
              allowDeselect={false}
              onChange={(value) => change(place, { cost_mode: modes.find((one) => one === value) ?? rule.cost_mode })}
            />
            <NumberInput
              label="USD"
              w={90}
              value={rule.estimated_cost_usd ?? ""}
              onChange={(value) => change(place, { estimated_cost_usd: numberOf(value) })}
              min={0}
            />
            <ActionIcon
              variant="subtle"
              px={6}
              color="red"
              size={30}
              aria-label={`Remove rule ${place + 1}`}
              onClick={() => set({ pricing_rules: pricing_rules.filter((_, at) => at !== place) })}
            >
              <IconTrash size={15} />
            </ActionIcon>
          </Group>
        ))}
        <Group>
          <Button variant="default" onClick={() => set({ pricing_rules: [...pricing_rules, emptyRule] })}>
            Add a rule for requests whose body has a value
          </Button>
        </Group>
      </Stack>
    </fieldset>
  )
}

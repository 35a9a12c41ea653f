import { JsonInput, MultiSelect, Stack, TagsInput } from "@mantine/core"
import { useEffect, useRef, useState } from "react"
import type { FieldError } from "../../api/ApiError.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ErrorNote } from "../page/ErrorNote.tsx"

export interface GuardrailValues {
  readonly mandatory_guardrails?: ReadonlyArray<string>
  readonly optional_guardrails?: ReadonlyArray<string>
  readonly forbidden_guardrails?: ReadonlyArray<string>
  readonly guardrail_config_overrides?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

interface Props {
  readonly values: GuardrailValues
  readonly onChange: (values: GuardrailValues) => void
  readonly errors?: ReadonlyArray<FieldError>
}

const notObjects = "must be an object of objects"

const lists = [
  ["mandatory_guardrails", "They check every request."],
  ["optional_guardrails", "Requests may ask for them."],
  ["forbidden_guardrails", "They check no request, also those that are on by default."]
] as const

const isOverrides = (value: unknown): value is NonNullable<GuardrailValues["guardrail_config_overrides"]> =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((one) => typeof one === "object" && one !== null && !Array.isArray(one))

/** The fields for which guardrails check the requests, and how. They are a part of a form. */
export const GuardrailForm = ({ errors = [], onChange, values }: Props) => {
  const maySeeCatalogue = useAllowed("operators:manage")
  const catalogue = useApi("/admin-ui/admin/guardrails", {}, { enabled: maySeeCatalogue })
  const [overrides, setOverrides] = useState(() => JSON.stringify(values.guardrail_config_overrides ?? {}, null, 2))
  const [isWrong, setWrong] = useState(false)
  const field = useRef<HTMLTextAreaElement>(null)
  // a form around it is not sent while the text means nothing: the values are still those before it
  useEffect(() => field.current?.setCustomValidity(isWrong ? notObjects : ""), [isWrong])
  const names = catalogue.data?.guardrails.map(({ name }) => name) ?? []
  const error = errors.find(({ field }) => field.startsWith("guardrail"))?.message
  const changeOverrides = (text: string) => {
    setOverrides(text)
    const parsed = parsedJson(text === "" ? "{}" : text)
    setWrong(!isOverrides(parsed))
    if (isOverrides(parsed)) onChange({ ...values, guardrail_config_overrides: parsed })
  }
  return (
    <Stack gap="sm">
      {catalogue.error !== null && <ErrorNote error={catalogue.error} onRetry={() => catalogue.refetch()} />}
      {lists.map(([name, help], place) => {
        const list = {
          label: <code>{name}</code>,
          description: help,
          value: [...(values[name] ?? [])],
          onChange: (next: Array<string>) => onChange({ ...values, [name]: next }),
          clearable: true,
          error: place === 0 ? error : undefined
        }
        return maySeeCatalogue ? (
          <MultiSelect key={name} {...list} data={[...new Set([...names, ...(values[name] ?? [])])]} searchable />
        ) : (
          <TagsInput key={name} {...list} acceptValueOnBlur />
        )
      })}
      <JsonInput
        ref={field}
        label={<code>guardrail_config_overrides</code>}
        description="By the name of the guardrail: members that replace those of its configuration."
        value={overrides}
        onChange={changeOverrides}
        error={isWrong ? notObjects : undefined}
        autosize
        minRows={2}
        size="xs"
      />
    </Stack>
  )
}

const parsedJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

import { Button, Group, TextInput } from "@mantine/core"
import type { ReactNode } from "react"
import { useUtc } from "../../address/useUtc.ts"
import { fieldText, fieldTime } from "../words/timeField.ts"

interface Props {
  readonly label: ReactNode
  readonly description?: string
  /** ISO text, or `null` for never. */
  readonly value: string | null
  readonly onChange: (value: string | null) => void
  readonly error?: string | undefined
}

const dayMs = 86_400_000
const choices = [7, 30, 90, 365]

/** A time to come, or never. */
export const TimeInput = ({ description, error, label, onChange, value }: Props) => {
  const utc = useUtc()
  return (
    <TextInput
      type="datetime-local"
      label={utc ? <>{label} (UTC)</> : label}
      description={description}
      value={value === null ? "" : fieldText(new Date(value), utc)}
      onChange={({ currentTarget }) =>
        onChange(currentTarget.value === "" ? null : new Date(fieldTime(currentTarget.value, utc)).toISOString())
      }
      error={error}
      inputContainer={(input) => (
        <>
          {input}
          <Group gap={4} mt={4}>
            {choices.map((days) => (
              <Button
                key={days}
                size="compact-sm"
                variant="default"
                onClick={() => onChange(new Date(Date.now() + days * dayMs).toISOString())}
              >
                {days} d
              </Button>
            ))}
            <Button size="compact-sm" variant="default" onClick={() => onChange(null)}>
              never
            </Button>
          </Group>
        </>
      )}
    />
  )
}

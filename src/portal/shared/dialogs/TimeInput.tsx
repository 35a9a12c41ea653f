import { Button, Group, TextInput } from "@mantine/core"
import type { ReactNode } from "react"

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

/** `datetime-local` has the time of the browser's zone, without naming it. */
const localText = (iso: string): string => {
  const at = new Date(iso)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** A time to come, or never. */
export const TimeInput = ({ description, error, label, onChange, value }: Props) => (
  <TextInput
    type="datetime-local"
    label={label}
    description={description}
    value={value === null ? "" : localText(value)}
    onChange={({ currentTarget }) =>
      onChange(currentTarget.value === "" ? null : new Date(currentTarget.value).toISOString())
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

import { Button, Group, NumberInput, Skeleton, Stack, Textarea, TextInput } from "@mantine/core"
import { type ReactNode, useState } from "react"
import { useUtc } from "../../../address/useUtc.ts"
import type { ApiError, FieldError } from "../../../api/ApiError.ts"
import { fieldLabel } from "../../../shared/fields/fieldWords.ts"
import { LazySelect } from "../../../shared/fields/LazySelect.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { amountText } from "../../../shared/words/amountText.ts"
import { fieldText, fieldTime } from "../../../shared/words/timeField.ts"
import type { LimitState } from "../state/limitStates.ts"
import { type RaiseValues, raiseProblems } from "./raiseProblems.ts"
import { suggestedAmount } from "./suggestedAmount.ts"
import { untilChoices } from "./until.ts"

interface Props {
  /** The key's own limits in force. */
  readonly limits: ReadonlyArray<LimitState>
  readonly isLoading: boolean
  readonly error: ApiError | null
  /** What the server did not accept. */
  readonly fields: ReadonlyArray<FieldError>
  readonly before: Partial<RaiseValues> | undefined
  readonly meter: string | undefined
  /** Below the reason: what else the change needs. */
  readonly extra?: ReactNode
  readonly onSubmit: (values: RaiseValues) => void
  readonly onCancel: () => void
}

export const RaiseForm = ({ before, error, extra, fields, isLoading, limits, meter, onCancel, onSubmit }: Props) => {
  const utc = useUtc()
  const [chosen, setChosen] = useState(before?.meter ?? meter)
  // Another limit than the one that somebody asked for is not chosen in its place.
  const limit = chosen === undefined ? limits[0] : limits.find((one) => one.meter === chosen)
  const [amount, setAmount] = useState<number | string>(before?.amount ?? "")
  const [until, setUntil] = useState(fieldText(before?.until ?? new Date(Date.now() + 3_600_000), utc))
  const [reason, setReason] = useState(before?.reason ?? "")
  const [problems, setProblems] = useState<ReadonlyArray<FieldError>>([])
  if (isLoading) return <Skeleton height={240} />
  if (error !== null) return <ErrorNote error={error} />
  if (limits.length === 0)
    return <p>This key has no limit of its own that could be raised. Limits of layers are changed at the policies.</p>
  const wanted = amount === "" && limit !== undefined ? suggestedAmount(limit) : Number(amount)
  const errorOf = (name: string) =>
    [...problems, ...fields].find(({ field }) => field === name || field.endsWith(`.${name}`))?.message
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (limit === undefined) return
        const at = new Date(fieldTime(until, utc))
        const values = { meter: limit.meter, amount: wanted, until: at, reason: reason.trim() }
        const found = raiseProblems(values, limit, Date.now())
        setProblems(found)
        if (found.length === 0) onSubmit(values)
      }}
    >
      <Stack gap="sm">
        <LazySelect
          label="Limit"
          data={limits.map((one) => ({
            value: one.meter,
            label: `${fieldLabel(one.meter)}${one.within === null ? "" : ` for ${one.within}`}, now ${amountText(one.limit, one.unit)}`
          }))}
          value={limit?.meter ?? null}
          {...(limit === undefined && {
            error: (
              <>
                <ForeignText>{chosen ?? ""}</ForeignText> is no limit of this key alone now. Choose the one to raise.
              </>
            )
          })}
          allowDeselect={false}
          onChange={(value) => {
            setChosen(value ?? undefined)
            setAmount("")
          }}
        />
        {limit !== undefined && (
          <NumberInput
            label="Raised to"
            description={`${limit.unit === "usd" ? "US dollars" : limit.unit} in each ${limit.window}`}
            value={amount === "" ? wanted : amount}
            onChange={setAmount}
            error={errorOf(limit.meter)}
            thousandSeparator=","
            decimalScale={limit.unit === "usd" ? 6 : 0}
            min={0}
            required
          />
        )}
        <Group gap="xs" align="end">
          <TextInput
            type="datetime-local"
            label={utc ? "Until (UTC)" : "Until"}
            value={until}
            onChange={({ currentTarget }) => setUntil(currentTarget.value)}
            error={errorOf("until")}
            required
          />
          {untilChoices.map(({ at, label }) => (
            <Button key={label} variant="default" onClick={() => setUntil(fieldText(at(new Date(), utc), utc))}>
              {label}
            </Button>
          ))}
        </Group>
        <Textarea
          label="Reason"
          description="The audit log keeps it."
          value={reason}
          onChange={({ currentTarget }) => setReason(currentTarget.value)}
          error={errorOf("reason")}
          required
          autosize
        />
        {extra}
        <Group justify="end">
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
          <Button type="submit" disabled={limit === undefined || until === "" || reason.trim() === ""}>
            Show the difference
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

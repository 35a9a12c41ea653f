import { Button, NumberInput, Textarea, TextInput } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useState } from "react"
import { useApi, useApiWrite } from "../../../api/queries.ts"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { LazySelect } from "../../../shared/fields/LazySelect.tsx"
import { amountText } from "../../../shared/words/amountText.ts"
import { limitLabel, type MeterName, type OwnLimit } from "../common/limits.ts"

const path = "/admin-ui/v1/me/raise-requests"

interface Props {
  /** The limit that is too low, where that is known. */
  readonly meter?: MeterName | undefined
  /** The model that was refused, or nothing yet (`""`) where a model is to be asked for. */
  readonly model?: string | undefined
  readonly variant?: "default" | "filled"
}

/** Asks whoever gave out the key for more. The answer comes back to the list of answers. */
export const RaiseButton = ({ meter, model, variant = "default" }: Props) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button variant={variant} onClick={() => setOpen(true)}>
        {titleOf(model)}
      </Button>
      {isOpen && <RaiseDialog meter={meter} model={model} onClose={() => setOpen(false)} />}
    </>
  )
}

const titleOf = (model: string | undefined): string => {
  if (model === undefined) return "Ask for a raise"
  return model === "" ? "Ask for a model" : "Ask for this model"
}

interface DialogProps {
  readonly meter: MeterName | undefined
  readonly model: string | undefined
  readonly onClose: () => void
}

const RaiseDialog = ({ meter: known, model: refused, onClose }: DialogProps) => {
  const limits = useApi("/admin-ui/v1/me/limits", {})
  const write = useApiWrite("POST", path, [path])
  const [reason, setReason] = useState("")
  const [meter, setMeter] = useState<string | null>(known ?? null)
  const [model, setModel] = useState(refused ?? "")
  const [amount, setAmount] = useState<number | string>("")
  const isOfModel = refused !== undefined
  const own = isOfModel ? [] : unique(limits.data?.limits ?? [])
  const chosen = own.find((limit) => limit.meter === meter)
  const fieldError = (field: string) => write.error?.fields.find((one) => one.field === field)?.message

  const ask = () => {
    const body = {
      reason: reason.trim(),
      ...(isOfModel && { model: model.trim() }),
      ...(chosen !== undefined && { meter: chosen.meter }),
      ...(chosen !== undefined && typeof amount === "number" && { amount })
    }
    write.mutate(
      { body },
      {
        onSuccess: () => {
          notifications.show({ message: "Your request was sent. The answer appears on your home page." })
          onClose()
        }
      }
    )
  }
  return (
    <ChangeDialog
      title={titleOf(refused)}
      action="Send the request"
      isBusy={write.isPending}
      error={write.error}
      onConfirm={ask}
      onClose={onClose}
    >
      <Textarea
        label="What do you need it for?"
        description="Whoever gave you the key reads this."
        value={reason}
        onChange={({ currentTarget }) => setReason(currentTarget.value.replace(/\s*\n\s*/g, " "))}
        required
        maxLength={500}
        autosize
        minRows={2}
        error={fieldError("reason")}
        data-autofocus
      />
      {isOfModel && (
        <TextInput
          label="Which model do you need?"
          value={model}
          onChange={({ currentTarget }) => setModel(currentTarget.value)}
          required
          maxLength={256}
          error={fieldError("model")}
        />
      )}
      {own.length > 0 && (
        <LazySelect
          label="Which limit is too low?"
          placeholder="I do not know"
          data={own.map((limit) => ({ value: limit.meter, label: limitLabel(limit) }))}
          value={meter}
          onChange={setMeter}
          allowDeselect={false}
          clearable
        />
      )}
      {chosen !== undefined && (
        <NumberInput
          label="How much would be enough?"
          description={`It is ${amountText(chosen.limit, chosen.unit)} now.`}
          value={amount}
          onChange={setAmount}
          min={0}
          thousandSeparator=","
          {...(chosen.unit === "usd" && { prefix: "$" })}
          error={fieldError("amount")}
        />
      )}
    </ChangeDialog>
  )
}

/** A limit of its own for each name: those of single models have the same names as those of all requests. */
const unique = (limits: ReadonlyArray<OwnLimit>): ReadonlyArray<OwnLimit> => [
  ...new Map(limits.toReversed().map((limit) => [limit.meter, limit])).values()
]

import { Button, NumberInput } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useState } from "react"
import { useApiWrite } from "../../../api/queries.ts"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { moneyText } from "../../../shared/words/format.ts"
import styles from "./FirstSteps.module.css"
import type { MadeKey } from "./MakeKey.tsx"

interface Props {
  readonly made: MadeKey
  readonly budget: number | undefined
  readonly onSet: (budget: number | undefined) => void
}

/** The most that the key may spend in a day. */
export const SetBudget = ({ budget, made, onSet }: Props) => {
  const [amount, setAmount] = useState<number | string>(5)
  const [isConfirming, setConfirming] = useState(false)
  const update = useApiWrite("PATCH", "/admin-ui/admin/keys/:id", [
    "/admin-ui/admin/keys",
    "/admin-ui/admin/limits/state"
  ])
  const params = { id: made.id }
  const set = (daily_budget_usd: number | null, then: () => void) =>
    update.mutate({ params, body: { policy: { daily_budget_usd } } }, { onSuccess: then })
  const undo = () =>
    set(null, () => {
      onSet(undefined)
      notifications.show({ message: "The budget is removed." })
    })
  if (budget !== undefined)
    return (
      <p>
        {made.name} may spend {moneyText(budget)} a day.{" "}
        <Button variant="subtle" onClick={undo} loading={update.isPending}>
          Undo
        </Button>
      </p>
    )
  return (
    <>
      <form
        className={styles.row}
        onSubmit={(event) => {
          event.preventDefault()
          setConfirming(true)
        }}
      >
        <NumberInput
          label="US dollars a day"
          description={<code>daily_budget_usd</code>}
          value={amount}
          onChange={setAmount}
          min={0}
          decimalScale={6}
        />
        <Button type="submit" disabled={amount === ""}>
          Set the budget
        </Button>
      </form>
      {isConfirming && (
        <ChangeDialog
          title="Set a budget"
          action="Set it"
          isBusy={update.isPending}
          error={update.error}
          onClose={() => setConfirming(false)}
          onConfirm={() =>
            set(Number(amount), () => {
              setConfirming(false)
              onSet(Number(amount))
            })
          }
        >
          <FieldDiff before={{ daily_budget_usd: null }} after={{ daily_budget_usd: Number(amount) }} />
          <p>Once it is used up, requests of the key are refused until 00:00 UTC.</p>
        </ChangeDialog>
      )}
    </>
  )
}

import { Button, NumberInput } from "@mantine/core"
import { useState } from "react"
import { useApiWrite } from "../../../api/queries.ts"
import { tellFailure, useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
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
  const tell = useTell()
  const audit = { type: "key", id: made.id }
  const set = (daily_budget_usd: number) =>
    update.mutate(
      { params, body: { policy: { daily_budget_usd } } },
      {
        onSuccess: () => {
          setConfirming(false)
          onSet(daily_budget_usd)
          // the way back stays on the page
          tell({ done: "The budget is set.", audit })
        }
      }
    )
  const undo = () =>
    update.mutate(
      { params, body: { policy: { daily_budget_usd: null } } },
      {
        onSuccess: () => {
          onSet(undefined)
          tell({ done: "The budget is removed.", audit })
        },
        onError: tellFailure
      }
    )
  if (budget !== undefined)
    return (
      <p>
        <ForeignText>{made.name}</ForeignText> may spend {moneyText(budget)} a day.{" "}
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
          onConfirm={() => set(Number(amount))}
        >
          <FieldDiff before={{ daily_budget_usd: null }} after={{ daily_budget_usd: Number(amount) }} />
          <p>Once it is used up, requests of the key are refused until 00:00 UTC.</p>
        </ChangeDialog>
      )}
    </>
  )
}

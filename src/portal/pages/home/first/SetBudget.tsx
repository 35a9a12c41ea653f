import { Button, TextInput } from "@mantine/core"
import { useState } from "react"
import { useApiWrite } from "../../../api/queries.ts"
import { tellFailure, useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { usePolicyFields } from "../../../shared/policy/usePolicyFields.ts"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { moneyText } from "../../../shared/words/format.ts"
import { readBudget } from "./budget.ts"
import styles from "./FirstSteps.module.css"
import type { MadeKey } from "./MakeKey.tsx"

interface Props {
  readonly made: MadeKey
  readonly budget: number | undefined
  readonly onSet: (budget: number | undefined) => void
}

/** The most that the key may spend in a day. */
export const SetBudget = ({ budget, made, onSet }: Props) => {
  const fields = usePolicyFields()
  const field = fields.data?.fields.find((one) => one.field === "daily_budget_usd")
  const [text, setText] = useState("5")
  const [problem, setProblem] = useState<string>()
  const [amount, setAmount] = useState<number>()
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
          setAmount(undefined)
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
          if (field === undefined) return
          const read = readBudget(text, field)
          if ("problem" in read) setProblem(read.problem)
          else setAmount(read.amount)
        }}
      >
        <TextInput
          label="US dollars a day"
          description={<code>daily_budget_usd</code>}
          inputMode="decimal"
          value={text}
          onChange={({ currentTarget }) => {
            setText(currentTarget.value)
            setProblem(undefined)
          }}
          error={problem}
        />
        <Button type="submit" disabled={text.trim() === "" || field === undefined}>
          Set the budget
        </Button>
      </form>
      {amount !== undefined && (
        <ChangeDialog
          title="Set a budget"
          action="Set it"
          isBusy={update.isPending}
          error={update.error}
          onClose={() => setAmount(undefined)}
          onConfirm={() => set(amount)}
        >
          <FieldDiff before={{ daily_budget_usd: null }} after={{ daily_budget_usd: amount }} />
          <p>
            {amount === 0
              ? "Every request of the key that costs anything is refused."
              : "Once it is used up, requests of the key are refused until 00:00 UTC."}
          </p>
        </ChangeDialog>
      )}
    </>
  )
}

import { Button, Group, NumberInput } from "@mantine/core"
import { useState } from "react"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { LazySelect } from "../../shared/fields/LazySelect.tsx"
import { nameOf, type Price, type Row } from "./endpointRows.ts"
import { numberOf } from "./formFields.ts"
import type { Service } from "./service.tsx"
import { usePriceChange } from "./usePriceChange.tsx"

const modes = ["none", "fixed", "passthrough"] as const

interface Props {
  readonly service: Service
  readonly row: Row
  readonly onClose: () => void
}

/** Gives an endpoint a price of its own, or takes it away. */
export const PriceForm = ({ onClose, row, service }: Props) => {
  const [mode, setMode] = useState<(typeof modes)[number]>(row.price?.cost_mode ?? "fixed")
  const [amount, setAmount] = useState<number | null>(row.price?.estimated_cost_usd ?? null)
  const { change, dialog } = usePriceChange(service)
  const name = nameOf(row)
  const save = (price: Price | undefined) =>
    change({
      title: `Price of ${name}`,
      rows: [row],
      price,
      done: `The price of ${name} is set.`,
      onDone: onClose
    })
  const { method, operation_id, path_template } = row
  return (
    <>
      <FormDrawer
        title={name}
        action="Show the difference"
        isBusy={false}
        error={null}
        onSubmit={() =>
          save({
            method,
            path_template,
            operation_id,
            cost_mode: mode,
            estimated_cost_usd: mode === "none" ? null : amount
          })
        }
        onClose={onClose}
      >
        <LazySelect
          label="cost_mode"
          data={[...modes]}
          value={mode}
          onChange={(value) => setMode(modes.find((one) => one === value) ?? mode)}
          allowDeselect={false}
        />
        {mode !== "none" && (
          <NumberInput
            label="estimated_cost_usd"
            description={
              mode === "fixed"
                ? "The price of a request."
                : "Reserved before the response; then what it reports counts."
            }
            value={amount ?? ""}
            onChange={(value) => setAmount(numberOf(value))}
            min={0}
            prefix="$"
          />
        )}
        {row.price !== undefined && (
          <Group>
            <Button variant="default" onClick={() => save(undefined)}>
              Remove its own price
            </Button>
          </Group>
        )}
      </FormDrawer>
      {dialog}
    </>
  )
}

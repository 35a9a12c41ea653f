import { Button, Group, NumberInput, TextInput } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import { useApi } from "../../api/queries.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type ModelPrice, type PriceInput, type Prices, pairText, priceFields, pricesOf } from "./prices.ts"

const list = "/admin-ui/admin/model-prices"
const path = `${list}/:model` as const

interface Props {
  /** Without one, the form asks for it. */
  readonly model: string | undefined
  readonly onClose: () => void
}

/** Loads what is stored, so that the form shows the difference from it. */
export const PriceForm = ({ model, onClose }: Props) => {
  const stored = useApi(list, {})
  const book = useApi("/admin-ui/admin/model-prices/book", {})
  if (stored.data === undefined) {
    return (
      <FormDrawer
        title="Set a price"
        action="Set"
        isBusy={false}
        isDisabled
        error={null}
        onSubmit={() => {}}
        onClose={onClose}
      >
        <Panel query={stored} height={200}>
          {null}
        </Panel>
      </FormDrawer>
    )
  }
  return <Form model={model} stored={stored.data} book={book.data?.prices ?? []} onClose={onClose} />
}

/** The prices of a model, and when they were set: never, where none are stored. */
interface Version extends Prices {
  readonly updated_at: string | null
}

const empty: Prices = {
  input_usd_per_million: null,
  output_usd_per_million: null,
  cached_input_usd_per_million: null,
  cache_write_usd_per_million: null
}

const versionIn = (stored: ReadonlyArray<ModelPrice>, model: string | undefined): Version =>
  stored.find((price) => price.model === model) ?? { ...empty, updated_at: null }

const help = {
  input_usd_per_million: "Dollars for a million tokens of input.",
  output_usd_per_million: "Dollars for a million tokens of output.",
  cached_input_usd_per_million: "Empty: the price of input.",
  cache_write_usd_per_million: "Empty: the price of input."
} as const

interface FormProps {
  readonly model: string | undefined
  readonly stored: ReadonlyArray<ModelPrice>
  readonly book: ReadonlyArray<Prices & { readonly model: string; readonly note: string | null }>
  readonly onClose: () => void
}

const Form = ({ book, model, onClose, stored }: FormProps) => {
  const [name, setName] = useState(model ?? "")
  // the page behind the form goes on to follow what others change
  const [seen] = useState(stored)
  const before = versionIn(seen, name)
  const [prices, setPrices] = useState<Prices>(() => pricesOf(versionIn(seen, model)))
  const { ask, dialog } = useConfirm<Version>()
  const suggested = book.find((price) => price.model === name)
  const { input_usd_per_million: input, output_usd_per_million: output } = prices
  const save = () => {
    if (input === null || output === null) return
    const isNew = before.updated_at === null
    const body: PriceInput = { ...prices, input_usd_per_million: input, output_usd_per_million: output }
    const put = (body: PriceInput, { updated_at }: Version) =>
      call("PUT", path, { params: { model: name }, body: { ...body, expected_updated_at: updated_at } })
    ask({
      title: isNew ? `Set the price of ${name}` : `Change the price of ${name}`,
      action: isNew ? "Set" : "Change",
      guard: {
        base: before,
        reread: async () => versionIn(await call("GET", list, {}), name),
        fieldsOf: (version) => ({ ...pricesOf(version) }),
        changes: { ...prices }
      },
      body: <p>It applies from the next request on. What was charged before stays.</p>,
      run: (version) => put(body, version),
      undo: (version, after) => {
        const { input_usd_per_million, output_usd_per_million } = version
        return input_usd_per_million === null || output_usd_per_million === null
          ? call("DELETE", path, {
              params: { model: name },
              query: { expected_updated_at: after.updated_at ?? undefined }
            })
          : put({ ...pricesOf(version), input_usd_per_million, output_usd_per_million }, after)
      },
      done: `The price of ${name} is set.`,
      audit: { type: "model_price", id: name },
      onDone: onClose
    })
  }
  return (
    <>
      <FormDrawer
        title={model === undefined ? "Set a price" : `Price of ${model}`}
        action="Show the difference"
        isBusy={false}
        isDisabled={name === "" || input === null || output === null}
        error={null}
        onSubmit={save}
        onClose={onClose}
      >
        <TextInput
          label="model"
          description="A name, or the beginning of several names and a star: claude-*"
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
          readOnly={model !== undefined}
          data-autofocus={model === undefined || undefined}
        />
        {suggested !== undefined && (
          <Group>
            <Button variant="default" onClick={() => setPrices(pricesOf(suggested))}>
              Take the book’s price: {pairText(suggested)}
            </Button>
            {suggested.note !== null && <span>{suggested.note}</span>}
          </Group>
        )}
        {priceFields.map((field, place) => (
          <NumberInput
            key={field}
            label={field}
            description={help[field]}
            value={prices[field] ?? ""}
            onChange={(value) => setPrices((all) => ({ ...all, [field]: typeof value === "number" ? value : null }))}
            min={0}
            decimalScale={6}
            prefix="$"
            data-autofocus={(model !== undefined && place === 0) || undefined}
          />
        ))}
      </FormDrawer>
      {dialog}
    </>
  )
}

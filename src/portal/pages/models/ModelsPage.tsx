import { Button } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { addressOf } from "../../api/control.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { Tile, Tiles } from "../../shared/page/Tile.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { countText, moneyText } from "../../shared/words/format.ts"
import { ImportBook } from "./ImportBook.tsx"
import { PriceForm } from "./PriceForm.tsx"
import { SeenModels, seenPath, seenRequest } from "./SeenModels.tsx"
import { StoredPrices } from "./StoredPrices.tsx"

const liveTopics = ["configuration"] as const
const paths = ["/admin-ui/admin/models", "/admin-ui/admin/model-prices", "/admin-ui/admin/model-prices/book"]

/** Which models are used, what they cost, and which of them nobody has priced. */
const ModelsPage = () => {
  const { change, text } = useTextSearch()
  const mayChange = useAllowed("settings:update")
  useLiveRefresh(liveTopics, paths)
  const close = () => change({ do: undefined, model: undefined })
  return (
    <>
      <PageHeader
        title="Models & prices"
        lead="Where the upstream does not report a cost, tokens cost what is set here."
        actions={
          <>
            <CopyAs
              address={
                text("tab") === "prices" ? "/admin-ui/admin/model-prices" : addressOf(seenPath, seenRequest(text))
              }
              sections={["model_prices"]}
            />
            {mayChange && (
              <>
                <Button variant="default" onClick={() => change({ do: "import" })}>
                  Import the price book
                </Button>
                <Button onClick={() => change({ do: "price", model: undefined })}>Set a price</Button>
              </>
            )}
          </>
        }
      />
      <Mistake />
      <Tabs
        tabs={[
          { value: "seen", label: "Seen in the last 30 days", content: () => <SeenModels /> },
          { value: "prices", label: "Stored prices", content: () => <StoredPrices /> }
        ]}
      />
      {text("do") === "import" && mayChange && <ImportBook onClose={close} />}
      {text("do") === "price" && mayChange && <PriceForm key={text("model")} model={text("model")} onClose={close} />}
    </>
  )
}

/** What models without a price were charged, and what they would have cost by the price book. */
const Mistake = () => {
  const unpriced = useApi("/admin-ui/admin/models", { query: { priced: "false", limit: 500 } })
  const models = unpriced.data?.models
  const sum = (of: (model: NonNullable<typeof models>[number]) => number) =>
    models?.reduce((total, model) => total + of(model), 0) ?? 0
  const known = models?.filter(({ at_book_price_usd }) => at_book_price_usd !== null) ?? []
  const refused = models?.filter(({ refused_for_price_count }) => refused_for_price_count > 0) ?? []
  const charged = sum(({ at_book_price_usd, summary }) => (at_book_price_usd === null ? 0 : summary.estimated_cost_usd))
  const byBook = sum(({ at_book_price_usd }) => at_book_price_usd ?? 0)
  return (
    <div style={{ marginBottom: 14 }}>
      <Tiles>
        <Tile
          label="Models without a price"
          query={unpriced}
          value={`${unpriced.data?.has_more === true ? "≥ " : ""}${countText(models?.length ?? 0)}`}
          detail={`${countText(known.length)} of them are in the price book, ${countText(refused.length)} were refused`}
        />
        <Tile
          label="Charged for them"
          query={unpriced}
          value={moneyText(sum(({ summary }) => summary.estimated_cost_usd))}
          detail="as unpriced_models of the policies says"
        />
        <Tile
          label="By the price book"
          query={unpriced}
          value={known.length === 0 ? "–" : moneyText(byBook)}
          detail={known.length > 0 ? `charged for these: ${moneyText(charged)}` : "none of them is in the price book"}
        />
        <Tile
          label="Cost of the mistake"
          query={unpriced}
          value={known.length === 0 ? "–" : moneyText(byBook - charged)}
          detail={
            known.length === 0
              ? "what the price book asks less what was charged: not known"
              : byBook > charged
                ? "too little was charged"
                : byBook < charged
                  ? "too much was charged"
                  : "none"
          }
        />
      </Tiles>
    </div>
  )
}

export default ModelsPage

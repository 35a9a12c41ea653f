import { call } from "../../api/control.ts"
import type { BodyOf } from "../../api/Endpoints.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { isSame, nameOf, type Price, type Row } from "./endpointRows.ts"
import { costText, path, readService, type Service } from "./service.tsx"

interface PriceChange {
  readonly title: string
  readonly rows: ReadonlyArray<Row>
  /** Without one, the prices of the rows are removed. */
  readonly price: Price | undefined
  readonly done: string
  readonly onDone?: () => void
}

/** Sets or removes prices of endpoints, after it has shown the difference. */
export const usePriceChange = (service: Service) => {
  const { ask, dialog } = useConfirm<Service>()
  const patch = (body: BodyOf<"PATCH", typeof path>) => call("PATCH", path, { params: { name: service.name }, body })
  const change = ({ done, onDone, price, rows, title }: PriceChange) => {
    const isMeant = (one: Price) => rows.some((row) => isSame(row, one))
    ask({
      title,
      action: "Change",
      guard: {
        base: service,
        reread: () => readService(service.name),
        fieldsOf: ({ endpoint_pricing_rules }) =>
          Object.fromEntries(
            rows.map((row) => [nameOf(row), priceText(endpoint_pricing_rules.find((one) => isSame(row, one)))])
          ),
        changes: Object.fromEntries(rows.map((row) => [nameOf(row), priceText(price)]))
      },
      // a patch replaces the prices of all endpoints
      run: ({ endpoint_pricing_rules, updated_at }: Service) => {
        const others = endpoint_pricing_rules.filter((one) => !isMeant(one))
        return patch({
          endpoint_pricing_rules: price === undefined ? others : [...others, price],
          expected_updated_at: updated_at
        })
      },
      undo: ({ endpoint_pricing_rules }: Service, { updated_at }: Service) =>
        patch({ endpoint_pricing_rules, expected_updated_at: updated_at }),
      done,
      audit: { type: "service", id: service.name },
      ...(onDone !== undefined && { onDone })
    })
  }
  return { change, dialog }
}

const priceText = (price: Price | undefined) => (price === undefined ? "as the service" : costText(price))

import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import type { Column } from "../../../shared/table/DataTable.tsx"
import type { Filter } from "../../../shared/table/FilterBar.tsx"
import { Count, Money } from "../../../shared/words/Amounts.tsx"
import { durationText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import type { OwnRequest } from "./useOwnRequests.ts"

/** `models`: the names that the API knows by themselves; it compares whole names. */
export const filtersOf = (models: ReadonlyArray<string>): ReadonlyArray<Filter> => [
  { name: "model", label: "Model", choices: models },
  {
    name: "status",
    label: "Outcome",
    choices: [
      { value: "success", label: "Succeeded" },
      { value: "failure", label: "Refused or failed" }
    ]
  },
  {
    name: "range",
    label: "Last 24 hours",
    choices: [
      { value: "1h", label: "Last hour" },
      { value: "24h", label: "Last 24 hours" },
      { value: "7d", label: "Last 7 days" },
      { value: "30d", label: "Last 30 days" }
    ]
  }
]

export const columns: ReadonlyArray<Column<OwnRequest>> = [
  {
    id: "when",
    header: "When",
    width: 130,
    csv: ["id", "created_at"],
    cell: ({ created_at }) => <When at={created_at} />
  },
  {
    id: "outcome",
    header: "Outcome",
    main: true,
    csv: ["status", "status_code"],
    cell: ({ refusal, status, status_code }) =>
      status === "success" ? (
        <StatusWord meaning="good">succeeded</StatusWord>
      ) : (
        <StatusWord meaning="bad">
          {refusal === null ? "failed" : "refused"} · {status_code}
        </StatusWord>
      )
  },
  {
    id: "why",
    header: "Why",
    main: true,
    wide: true,
    csv: ({ refusal }) => ({ refusal: refusal?.sentence }),
    cell: ({ refusal }) => <ForeignText>{refusal?.sentence ?? ""}</ForeignText>
  },
  {
    id: "model",
    header: "Model",
    main: true,
    csv: ["model"],
    cell: ({ model }) => <ForeignText>{model ?? "–"}</ForeignText>
  },
  { id: "path", header: "Path", hidden: true, csv: ["route"], cell: ({ route }) => <code>{route}</code> },
  {
    id: "tokens",
    header: "Tokens",
    numeric: true,
    main: true,
    csv: ["total_tokens"],
    cell: ({ total_tokens }) => <Count of={total_tokens} />
  },
  {
    id: "cost",
    header: "Cost",
    numeric: true,
    main: true,
    csv: ["estimated_cost_usd"],
    cell: ({ estimated_cost_usd }) => <Money usd={estimated_cost_usd} />
  },
  {
    id: "took",
    header: "Took",
    numeric: true,
    main: true,
    csv: ["latency_ms"],
    cell: ({ latency_ms }) => durationText(latency_ms)
  },
  {
    id: "client",
    header: "Program",
    hidden: true,
    csv: ["client"],
    cell: ({ client }) => <ForeignText>{client ?? "–"}</ForeignText>
  }
]

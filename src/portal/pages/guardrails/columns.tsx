import { Link } from "@tanstack/react-router"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import type { Column } from "../../shared/table/DataTable.tsx"
import { Count } from "../../shared/words/Amounts.tsx"
import { durationText } from "../../shared/words/format.ts"
import { EnabledWord, type Guardrail } from "./words/words.tsx"

type Sums = ResponseOf<"GET", "/admin-ui/admin/guardrails/summary">["summary"]

interface Row extends Guardrail {
  /** `undefined` while they load. */
  readonly counts: Readonly<Record<string, number>> | undefined
  readonly runs: number
  readonly meanMs: number | undefined
}

/** Puts the executions of the range beside their guardrails. */
export const rowsOf = (guardrails: ReadonlyArray<Guardrail>, sums: Sums | undefined): ReadonlyArray<Row> =>
  guardrails.map((guardrail) => {
    const own = (sums ?? []).filter(({ guardrail_name }) => guardrail_name === guardrail.name)
    const runs = own.reduce((sum, { count }) => sum + count, 0)
    const counts: Record<string, number> = {}
    for (const { action, count } of own) counts[action] = (counts[action] ?? 0) + count
    const tookMs = own.reduce((sum, { total_latency_ms }) => sum + total_latency_ms, 0)
    return {
      ...guardrail,
      counts: sums === undefined ? undefined : counts,
      runs,
      meanMs: runs === 0 ? undefined : tookMs / runs
    }
  })

export const columnsOf = (isWithoutCounts: boolean): ReadonlyArray<Column<Row>> => [
  {
    id: "name",
    header: "Name",
    cell: ({ name }) => (
      <Link to="/guardrails/$name" params={{ name }}>
        <ForeignText>{name}</ForeignText>
      </Link>
    )
  },
  { id: "state", header: "State", main: true, cell: ({ enabled }) => <EnabledWord enabled={enabled} /> },
  { id: "kind", header: "Kind", cell: ({ provider_kind }) => (provider_kind === "http" ? "http" : "built in") },
  { id: "on", header: "On by default", cell: ({ default_on }) => (default_on ? "yes" : "no") },
  { id: "modes", header: "Modes", cell: ({ modes }) => <code>{modes.join(", ")}</code> },
  {
    id: "failure",
    header: "If it fails",
    main: true,
    cell: ({ failure_policy }) => <code>{failure_policy}</code>
  },
  { id: "runs", header: "Runs", numeric: true, main: true, cell: ({ counts, runs }) => countOf(counts, runs) },
  ...(["modify", "warn", "block"] as const).map(
    (action): Column<Row> => ({
      id: action,
      header: action,
      numeric: true,
      cell: ({ counts }) => countOf(counts, counts?.[action] ?? 0)
    })
  ),
  {
    id: "latency",
    header: "Mean time",
    numeric: true,
    hidden: isWithoutCounts,
    cell: ({ meanMs }) => (meanMs === undefined ? "–" : durationText(meanMs))
  },
  {
    id: "description",
    header: "Description",
    hidden: true,
    cell: ({ description }) => <ForeignText>{description}</ForeignText>
  }
]

const countOf = (counts: Row["counts"], count: number) => (counts === undefined ? "–" : <Count of={count} short />)

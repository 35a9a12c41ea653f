import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApiList } from "../../api/queries.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { type Outcome, outcomeOf } from "./words/outcomes.ts"
import { Selections } from "./words/Selections.tsx"

export const coveredKeysPath = "/admin-ui/admin/guardrails/:name/coverage/keys"
type CoveredKey = ResponseOf<"GET", typeof coveredKeysPath>[number]

interface Props {
  readonly name: string
  /** Without one, all usable keys are listed. */
  readonly chosen: Outcome | undefined
}

/** The keys with the chosen outcome, newest first. */
export const CoveredKeys = ({ chosen, name }: Props) => {
  const list = useApiList(coveredKeysPath, { params: { name }, query: { outcome: chosen?.outcome, limit: 100 } })
  return (
    <Panel
      title="Keys"
      note={
        chosen === undefined
          ? "All that can be used. Choose a number above to see its keys alone."
          : `${chosen.label}: ${chosen.detail}.`
      }
      query={list.query}
      height={240}
      flush
    >
      <DataTable
        name="guardrail-keys"
        label="Keys"
        columns={columns}
        rows={list.rows}
        rowId={({ id }) => id}
        list={list}
        empty={
          <EmptyList filters={filters} unmatched="No key is among these.">
            <Empty action={<LinkButton path="/keys">All keys</LinkButton>}>There is no key that can be used.</Empty>
          </EmptyList>
        }
      />
    </Panel>
  )
}

const filters = [{ name: "outcome" }]

const orNone = (text: string | null) => (text === null ? "–" : <ForeignText title={text}>{text}</ForeignText>)

const columns: ReadonlyArray<Column<CoveredKey>> = [
  {
    id: "key",
    header: "Key",
    csv: ["id", "name"],
    cell: ({ id, key_prefix, name }) => (
      <PathLink path={`/keys/${encodeURIComponent(id)}`}>
        <ForeignText>{name ?? key_prefix}</ForeignText>
      </PathLink>
    )
  },
  { id: "prefix", header: "Prefix", csv: ["key_prefix"], cell: ({ key_prefix }) => <code>{key_prefix}</code> },
  {
    id: "outcome",
    header: "Outcome",
    main: true,
    csv: ["outcome"],
    cell: ({ outcome }) => outcomeOf(outcome)?.label ?? outcome
  },
  {
    id: "selections",
    header: "Its own policy",
    main: true,
    labelled: true,
    csv: ["selections"],
    cell: (key) => <Selections of={key} />
  },
  {
    id: "project",
    header: "Project",
    main: true,
    labelled: true,
    short: true,
    csv: ["project_id", "project_name"],
    cell: ({ project_name }) => orNone(project_name)
  },
  { id: "team", header: "Team", short: true, csv: ["team_id"], cell: ({ team_id }) => orNone(team_id) }
]

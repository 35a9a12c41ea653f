import { Link, useNavigate } from "@tanstack/react-router"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApiList } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { SpendUntil } from "../../shared/keys/SpendUntil.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { Money } from "../../shared/words/Amounts.tsx"
import { curlOf } from "../../shared/words/CopyAs.tsx"
import { type Meaning, StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import type { Project } from "./project.ts"

const path = "/admin-ui/admin/keys"
type Key = ResponseOf<"GET", typeof path>[number]

const meanings: Readonly<Record<Key["state"], Meaning>> = {
  active: "good",
  disabled: "idle",
  expired: "warning",
  revoked: "bad"
}

const columns: ReadonlyArray<Column<Key>> = [
  {
    id: "name",
    header: "Name",
    csv: ["id", "name", "key_prefix"],
    cell: ({ id, key_prefix, name }) => (
      <Link to="/keys/$id" params={{ id }}>
        <ForeignText>{name ?? key_prefix}</ForeignText>
      </Link>
    )
  },
  {
    id: "state",
    header: "State",
    main: true,
    csv: ["state"],
    cell: ({ state }) => <StatusWord meaning={meanings[state]}>{state}</StatusWord>
  },
  {
    id: "owner",
    header: "Owner",
    csv: ["owner_email"],
    cell: ({ owner_email }) => (owner_email === null ? "–" : <ForeignText>{owner_email}</ForeignText>)
  },
  {
    id: "used",
    header: "Last used",
    main: true,
    labelled: true,
    csv: ["last_used_at"],
    cell: ({ last_used_at }) => <When at={last_used_at} absent="never" />
  },
  {
    id: "spend",
    header: "Spend this month",
    numeric: true,
    main: true,
    csv: ["spend_this_month_usd"],
    cell: ({ spend_this_month_usd }) => <Money usd={spend_this_month_usd} />
  },
  {
    id: "expires",
    header: "Expires",
    main: true,
    labelled: true,
    csv: ["expires_at"],
    cell: ({ expires_at }) => <When at={expires_at} absent="never" />
  }
]

/** The keys of a project, the dearest first. */
export const ProjectKeys = ({ of: project }: { readonly of: Project }) => {
  const navigate = useNavigate()
  const maySeeKeys = useAllowed("operators:manage")
  const mayCreate = useAllowed("keys:create") && maySeeKeys
  const list = useApiList(path, { query: { project_id: project.id, sort_by: "spend", limit: 100 } })
  const create = mayCreate && (
    <LinkButton path="/keys/new" search={{ project_id: project.id }} variant="filled">
      Create a key
    </LinkButton>
  )
  return (
    <Panel
      title="Keys"
      note={
        <>
          the dearest of this month first
          {list.rows[0] !== undefined && (
            <>
              , <SpendUntil of={list.rows[0]} />
            </>
          )}
        </>
      }
      query={list.query}
      height={300}
      flush
      actions={
        <>
          <LinkButton path="/keys" search={{ project_id: project.id }}>
            In the list of keys
          </LinkButton>
          {create}
        </>
      }
    >
      <DataTable
        name="project-keys"
        label="Keys"
        columns={columns}
        rows={list.rows}
        rowId={({ id }) => id}
        onOpen={({ id }) => void navigate({ to: "/keys/$id", params: { id } })}
        list={list}
        empty={
          <Empty
            action={create}
            command={
              mayCreate &&
              curlOf({
                method: "POST",
                address: path,
                body: { name: "ada, laptop", owner_type: "individual", project_id: project.id }
              })
            }
          >
            The project has no key.
          </Empty>
        }
      />
    </Panel>
  )
}

import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import type { Column } from "../../shared/table/DataTable.tsx"
import { When } from "../../shared/words/When.tsx"
import { KeyServiceNames, PolicySummary } from "./words/KeySummaries.tsx"
import { Due, KeyName, KeySpend, KeyState, Tags } from "./words/KeyWords.tsx"
import type { Key } from "./words/key.ts"

const orNone = (text: string | null) => (text === null ? "–" : <ForeignText>{text}</ForeignText>)

export const columns: ReadonlyArray<Column<Key>> = [
  {
    id: "name",
    header: "Name and prefix",
    cell: (key) => (
      <>
        <KeyName of={key} />
        <br />
        <code>{key.key_prefix}</code>
      </>
    )
  },
  { id: "state", header: "State", width: 100, main: true, cell: (key) => <KeyState of={key} /> },
  { id: "project", header: "Project", cell: ({ project_name }) => orNone(project_name) },
  { id: "owner", header: "Owner", main: true, labelled: true, cell: ({ owner_email }) => orNone(owner_email) },
  { id: "team", header: "Team", cell: ({ team_id }) => orNone(team_id) },
  {
    id: "last_used",
    header: "Last used",
    sort: "last_used_at",
    main: true,
    labelled: true,
    width: 120,
    cell: ({ last_used_at }) => <When at={last_used_at} absent="never" />
  },
  {
    id: "spend",
    header: "Spend this month",
    sort: "spend",
    main: true,
    labelled: true,
    width: 170,
    cell: (key) => <KeySpend of={key} />
  },
  {
    id: "expires",
    header: "Expires",
    sort: "expires_at",
    main: true,
    labelled: true,
    width: 130,
    cell: ({ expires_at }) => <Due at={expires_at} absent="never" />
  },
  {
    id: "rotation",
    header: "Rotation due",
    sort: "rotation_due_at",
    hidden: true,
    cell: ({ rotation_due_at }) => <Due at={rotation_due_at} absent="–" />
  },
  { id: "services", header: "Services", hidden: true, cell: (key) => <KeyServiceNames of={key} /> },
  { id: "policy", header: "Own policy", hidden: true, cell: (key) => <PolicySummary of={key} /> },
  { id: "tags", header: "Tags", cell: ({ tags }) => <Tags tags={tags} /> },
  {
    id: "created",
    header: "Created",
    sort: "created_at",
    hidden: true,
    cell: ({ created_at }) => <When at={created_at} />
  }
]

import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import type { Column } from "../../shared/table/DataTable.tsx"
import { When } from "../../shared/words/When.tsx"
import { KeyServiceNames, PolicySummary } from "./words/KeySummaries.tsx"
import { Due, KeyName, KeySpend, KeyState, Tags } from "./words/KeyWords.tsx"
import type { Key } from "./words/key.ts"

const orNone = (text: string | null) => (text === null ? "–" : <ForeignText title={text}>{text}</ForeignText>)

export const columns: ReadonlyArray<Column<Key>> = [
  {
    id: "name",
    header: "Name and prefix",
    csv: ["id", "name", "key_prefix"],
    cell: (key) => (
      <>
        <KeyName of={key} />
        <br />
        <code>{key.key_prefix}</code>
      </>
    )
  },
  { id: "state", header: "State", width: 100, main: true, csv: ["state"], cell: (key) => <KeyState of={key} /> },
  {
    id: "project",
    header: "Project",
    short: true,
    csv: ["project_id", "project_name"],
    cell: ({ project_name }) => orNone(project_name)
  },
  {
    id: "owner",
    header: "Owner",
    short: true,
    main: true,
    labelled: true,
    csv: ["owner_email"],
    cell: ({ owner_email }) => orNone(owner_email)
  },
  { id: "team", header: "Team", short: true, csv: ["team_id"], cell: ({ team_id }) => orNone(team_id) },
  {
    id: "last_used",
    header: "Last used",
    sort: "last_used_at",
    main: true,
    labelled: true,
    width: 120,
    csv: ["last_used_at"],
    cell: ({ last_used_at }) => <When at={last_used_at} absent="never" />
  },
  {
    id: "spend",
    header: "Spend this month",
    sort: "spend",
    main: true,
    labelled: true,
    width: 170,
    csv: ["spend_this_month_usd", "monthly_budget_usd"],
    cell: (key) => <KeySpend of={key} />
  },
  {
    id: "expires",
    header: "Expires",
    sort: "expires_at",
    main: true,
    labelled: true,
    width: 130,
    csv: ["expires_at"],
    cell: ({ expires_at }) => <Due at={expires_at} absent="never" />
  },
  {
    id: "rotation",
    header: "Rotation due",
    sort: "rotation_due_at",
    hidden: true,
    csv: ["rotation_due_at"],
    cell: ({ rotation_due_at }) => <Due at={rotation_due_at} absent="–" />
  },
  {
    id: "services",
    header: "Services",
    hidden: true,
    csv: ["service_names"],
    cell: (key) => <KeyServiceNames of={key} />
  },
  { id: "policy", header: "Own policy", hidden: true, csv: ["policy"], cell: (key) => <PolicySummary of={key} /> },
  { id: "tags", header: "Tags", csv: ["tags"], cell: ({ tags }) => <Tags tags={tags} /> },
  {
    id: "created",
    header: "Created",
    sort: "created_at",
    hidden: true,
    csv: ["created_at"],
    cell: ({ created_at }) => <When at={created_at} />
  }
]

import type { ResponseOf } from "../../api/Endpoints.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { actorOf } from "../../shared/policy/actor.ts"
import type { Column } from "../../shared/table/DataTable.tsx"
import type { Filter } from "../../shared/table/FilterBar.tsx"
import { When } from "../../shared/words/When.tsx"
import { Changes } from "./Changes.tsx"
import type { AuditEvent } from "./event.ts"
import { Target } from "./Target.tsx"

type Kinds = ResponseOf<"GET", "/admin-ui/admin/audit-events/actions">

/** With a kind of object, the actions are those that happen to it. */
export const filtersOf = (kinds: Kinds, kind: string | undefined): ReadonlyArray<Filter> => [
  { name: "target_id", label: "Id or name of the object" },
  {
    name: "action",
    label: "Action",
    choices: [
      ...new Set(
        kinds.filter(({ target_type }) => kind === undefined || target_type === kind).flatMap(({ actions }) => actions)
      )
    ].sort()
  },
  { name: "target_type", label: "Kind of object", choices: kinds.map(({ target_type }) => target_type).sort() },
  { name: "actor_token_id", label: "Operator token's id" },
  { name: "span", label: "Range of the top bar", choices: [{ value: "all", label: "Whole log" }] }
]

export const columns: ReadonlyArray<Column<AuditEvent>> = [
  { id: "action", header: "Action", csv: ["id", "action"], cell: ({ action }) => <code>{action}</code> },
  {
    id: "at",
    header: "Time",
    main: true,
    width: 110,
    csv: ["created_at"],
    cell: ({ created_at }) => <When at={created_at} />
  },
  {
    id: "actor",
    header: "By",
    main: true,
    csv: ["actor_token_id", "actor_name"],
    cell: (event) => <ForeignText>{actorOf(event)}</ForeignText>
  },
  {
    id: "target",
    header: "Object",
    main: true,
    csv: ["target_type", "target_id", "target_name"],
    cell: (event) => <Target event={event} />
  },
  {
    id: "changes",
    header: "What changed",
    main: true,
    csv: ["before", "after"],
    cell: (event) => <Changes event={event} />
  },
  { id: "ip", header: "Address", csv: ["ip"], cell: ({ ip }) => ip ?? "–" },
  {
    id: "user_agent",
    header: "User agent",
    hidden: true,
    csv: ["user_agent"],
    cell: ({ user_agent }) => <ForeignText>{user_agent ?? "–"}</ForeignText>
  },
  {
    id: "request",
    header: "Request",
    hidden: true,
    csv: ["request_id"],
    cell: ({ request_id }) => <code>{request_id}</code>
  },
  { id: "sequence", header: "Number", numeric: true, width: 90, csv: ["sequence"], cell: ({ sequence }) => sequence }
]

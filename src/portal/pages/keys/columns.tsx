import { Badge, Group } from "@mantine/core"
import type { ResponseOf } from "../../api/Endpoints.ts"
import type { Column } from "../../shared/table/DataTable.tsx"
import type { Filter } from "../../shared/table/FilterBar.tsx"
import { Money } from "../../shared/words/Amounts.tsx"
import { When } from "../../shared/words/When.tsx"

export type Key = ResponseOf<"GET", "/admin-ui/admin/keys">[number]

export const filters: ReadonlyArray<Filter> = [
  { name: "q", label: "Name, prefix, owner or tag" },
  { name: "state", label: "State", choices: ["active", "disabled", "expired", "revoked"] },
  { name: "near_limit", label: "Near a limit", choices: [{ value: "true", label: "Near a limit" }] },
  { name: "tag", label: "Tag" }
]

export const columns: ReadonlyArray<Column<Key>> = [
  { id: "name", header: "Name", cell: ({ key_prefix, name }) => name ?? key_prefix },
  { id: "prefix", header: "Prefix", cell: ({ key_prefix }) => <code>{key_prefix}</code> },
  { id: "owner", header: "Owner", cell: ({ owner_email }) => owner_email ?? "–" },
  { id: "project", header: "Project", cell: ({ project_id }) => project_id ?? "–" },
  {
    id: "last_used",
    header: "Last used",
    sort: "last_used_at",
    main: true,
    cell: ({ last_used_at }) => <When at={last_used_at} absent="never" />
  },
  {
    id: "spend",
    header: "This month",
    sort: "spend",
    numeric: true,
    main: true,
    cell: ({ spend_this_month_usd }) => <Money usd={spend_this_month_usd} />
  },
  {
    id: "expires",
    header: "Expires",
    sort: "expires_at",
    cell: ({ expires_at }) => <When at={expires_at} absent="never" />
  },
  {
    id: "tags",
    header: "Tags",
    cell: ({ tags }) => (
      <Group gap={4} wrap="nowrap">
        {tags.map((tag) => (
          <Badge key={tag} variant="light" color="gray" tt="none">
            {tag}
          </Badge>
        ))}
      </Group>
    )
  }
]

import { Menu } from "@mantine/core"
import { addressOf } from "../../api/control.ts"
import type { UsageFilters } from "./fields.ts"

interface Props {
  readonly filters: UsageFilters
  readonly from: string
  readonly to: string | undefined
}

/** Items of a menu that save all matching requests. They need `usage:export`. */
export const RecordExport = ({ filters, from, to }: Props) => {
  const query = { ...filters, from, ...(to !== undefined && { to }), all: "true" as const }
  return (
    <>
      <Menu.Label>All matching requests, in this range</Menu.Label>
      <Menu.Item component="a" download href={addressOf("/admin-ui/admin/usage/export.csv", { query })}>
        as CSV
      </Menu.Item>
      <Menu.Item component="a" download href={addressOf("/admin-ui/admin/usage/export.json", { query })}>
        as JSON
      </Menu.Item>
    </>
  )
}

import { Select } from "@mantine/core"
import { useDebouncedValue } from "@mantine/hooks"
import { useState } from "react"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { shownText } from "../../../shared/foreign/marks.ts"
import { statePath } from "../state/limitStates.ts"

interface Props {
  readonly id: string | undefined
  readonly name: string | undefined
  readonly onChange: (id: string | undefined) => void
}

const most = 50

/** Finds a key by its name. A token that may not list keys chooses among those that have used a limit. */
export const KeySelect = ({ id, name, onChange }: Props) => {
  const [typed, setTyped] = useState("")
  const [asked] = useDebouncedValue(typed, 200)
  const mayList = useAllowed("operators:manage")
  const q = asked === name ? "" : asked
  const keys = useApi(
    "/admin-ui/admin/keys",
    { query: { q: q === "" ? undefined : q, state: "active", limit: most } },
    { enabled: mayList }
  )
  const used = useApi(statePath, { query: { scope: "all", limit: 500 } }, { enabled: !mayList })
  const found = mayList
    ? (keys.data ?? []).map((key) => ({ value: key.id, label: shownText(key.name ?? key.key_prefix) }))
    : [
        ...new Map(
          (used.data?.limits ?? []).flatMap(({ scope, scope_id, scope_name }) =>
            scope === "key" && scope_id !== null ? [[scope_id, { value: scope_id, label: shownText(scope_name) }]] : []
          )
        ).values()
      ]
  const data =
    id === undefined || found.some(({ value }) => value === id)
      ? found
      : [{ value: id, label: shownText(name ?? id) }, ...found]
  return (
    <Select
      label="Key"
      description="By its name, prefix, owner or tag"
      data={data}
      value={id ?? null}
      onChange={(value) => onChange(value ?? undefined)}
      onSearchChange={setTyped}
      searchable
      allowDeselect={false}
      // the server has found what matches
      {...(mayList && { filter: ({ options }) => options })}
      nothingFoundMessage="No usable key matches"
      error={keys.error?.message ?? used.error?.message}
      {...(id === undefined && { "data-autofocus": true })}
      mb="sm"
    />
  )
}

import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { LazySelect } from "../../../shared/fields/LazySelect.tsx"
import { shownText } from "../../../shared/foreign/marks.ts"
import { type Choice, focusedFirst, SearchedSelect, useTypedSearch } from "../../../shared/keys/SearchedSelect.tsx"
import { statePath } from "../state/limitStates.ts"

interface Props {
  readonly id: string | undefined
  readonly name: string | undefined
  readonly onChange: (id: string | undefined) => void
}

const most = 50

/** Finds a usable key. A token that may not list keys chooses among those that have used a limit. */
export const KeySelect = (props: Props) =>
  useAllowed("operators:manage") ? <ListedKeys {...props} /> : <UsedKeys {...props} />

const ListedKeys = ({ id, name, onChange }: Props) => {
  const chosen = id === undefined ? undefined : shownText(name ?? id)
  const search = useTypedSearch(chosen)
  const keys = useApi("/admin-ui/admin/keys", { query: { ...search.query, state: "active", limit: most } })
  return (
    <SearchedSelect
      label="Key"
      description="By its name, prefix, owner or tag"
      search={search}
      found={keys.data?.map((key) => ({ value: key.id, label: shownText(key.name ?? key.key_prefix) }))}
      isSearching={keys.isFetching}
      value={id ?? null}
      chosen={chosen}
      onChange={(value) => onChange(value ?? undefined)}
      nothing="No usable key matches"
      allowDeselect={false}
      error={keys.error?.message}
      isFocused={id === undefined}
      mb="sm"
    />
  )
}

const UsedKeys = ({ id, name, onChange }: Props) => {
  const used = useApi(statePath, { query: { scope: "all", limit: 500 } })
  const byId = new Map<string, Choice>(
    (used.data?.limits ?? []).flatMap(({ scope, scope_id, scope_name }) =>
      scope === "key" && scope_id !== null ? [[scope_id, { value: scope_id, label: shownText(scope_name) }]] : []
    )
  )
  if (id !== undefined && !byId.has(id)) byId.set(id, { value: id, label: shownText(name ?? id) })
  return (
    <LazySelect
      label="Key"
      description="One that has used a limit"
      data={[...byId.values()]}
      value={id ?? null}
      onChange={(value) => onChange(value ?? undefined)}
      searchable
      allowDeselect={false}
      nothingFoundMessage="No usable key matches"
      error={used.error?.message}
      {...(id === undefined && focusedFirst)}
      mb="sm"
    />
  )
}

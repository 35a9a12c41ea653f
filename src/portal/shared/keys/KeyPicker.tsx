import type { SelectProps } from "@mantine/core"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { shownText } from "../foreign/marks.ts"
import { SearchedSelect, useTypedSearch } from "./SearchedSelect.tsx"

interface Props extends Pick<SelectProps, "comboboxProps"> {
  readonly value: string | undefined
  readonly onChange: (id: string | undefined) => void
  readonly label?: string
  readonly error?: string | undefined
}

const mostShown = 20

type Key = ResponseOf<"GET", "/admin-ui/admin/keys">[number]

const labelOf = ({ key_prefix, name, project_name }: Pick<Key, "key_prefix" | "name" | "project_name">): string =>
  shownText([name ?? key_prefix, project_name].filter((text) => text !== null).join(" · "))

/** Finds a key by its name, its prefix, its owner or its tags. */
export const KeyPicker = ({ error, label = "Key", onChange, value, ...input }: Props) => {
  const maySee = useAllowed("operators:manage")
  const key = useApi(
    "/admin-ui/admin/keys/:id",
    { params: { id: value ?? "" } },
    { enabled: maySee && value !== undefined }
  )
  const chosen = key.data !== undefined && key.data.id === value ? labelOf(key.data) : undefined
  const search = useTypedSearch(chosen)
  const found = useApi(
    "/admin-ui/admin/keys",
    { query: { ...search.query, limit: mostShown, sort_by: "last_used_at" } },
    { enabled: maySee && search.isReached }
  )
  if (!maySee) return null
  return (
    <SearchedSelect
      label={label}
      placeholder="name, prefix, owner or tag"
      {...input}
      search={search}
      found={found.data?.map((one) => ({ value: one.id, label: labelOf(one) }))}
      isSearching={found.isFetching}
      value={value ?? null}
      chosen={chosen}
      onChange={(id) => onChange(id ?? undefined)}
      nothing="No key matches."
      clearable
      error={error ?? found.error?.message}
    />
  )
}

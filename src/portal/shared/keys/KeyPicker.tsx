import { Select, type SelectProps } from "@mantine/core"
import { useDebouncedValue } from "@mantine/hooks"
import { useState } from "react"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { shownText } from "../foreign/marks.ts"

interface Props extends Pick<SelectProps, "comboboxProps"> {
  readonly value: string | undefined
  readonly onChange: (id: string | undefined) => void
  readonly label?: string
  readonly error?: string | undefined
}

const typingMs = 200
const mostShown = 20

type Key = ResponseOf<"GET", "/admin-ui/admin/keys">[number]

const labelOf = ({ key_prefix, name, project_name }: Pick<Key, "key_prefix" | "name" | "project_name">): string =>
  shownText([name ?? key_prefix, project_name].filter((text) => text !== null).join(" · "))

/** Finds a key by its name, its prefix, its owner or its tags. The server searches. */
export const KeyPicker = ({ label = "Key", onChange, value, ...input }: Props) => {
  const maySee = useAllowed("operators:manage")
  const [typed, setTyped] = useState("")
  const [asked] = useDebouncedValue(typed.trim(), typingMs)
  const chosen = useApi(
    "/admin-ui/admin/keys/:id",
    { params: { id: value ?? "" } },
    { enabled: maySee && value !== undefined }
  )
  const current = value !== undefined && chosen.data?.id === value ? [chosen.data] : []
  // the field has the label of the chosen key, which is no search
  const q = current.some((key) => labelOf(key) === asked) ? "" : asked
  const found = useApi(
    "/admin-ui/admin/keys",
    { query: { ...(q !== "" && { q }), limit: mostShown, sort_by: "last_used_at" } },
    { enabled: maySee }
  )
  if (!maySee) return null
  const keys = [...new Map([...current, ...(found.data ?? [])].map((key) => [key.id, key])).values()]
  return (
    <Select
      label={label}
      placeholder="name, prefix, owner or tag"
      data={keys.map((key) => ({ value: key.id, label: labelOf(key) }))}
      value={value ?? null}
      onChange={(id) => {
        setTyped("")
        onChange(id ?? undefined)
      }}
      onSearchChange={setTyped}
      filter={({ options }) => options}
      searchable
      clearable
      {...input}
      error={input.error ?? found.error?.message}
      nothingFoundMessage={found.isFetching ? "Looking…" : "No key matches."}
    />
  )
}

import { type SelectProps, TextInput } from "@mantine/core"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { shownText } from "../foreign/marks.ts"
import { SearchedSelect, useTypedSearch } from "./SearchedSelect.tsx"

interface Props
  extends Pick<
    SelectProps,
    "aria-label" | "clearable" | "comboboxProps" | "description" | "disabled" | "label" | "placeholder" | "w"
  > {
  readonly value: string | null
  /** The name of the project in `value`, where the page knows it. */
  readonly name?: string | null
  readonly onChange: (id: string | null, name: string | undefined) => void
  readonly error?: string | undefined
  readonly isFocused?: boolean
}

const mostShown = 50

/** Reads the name of a project. It is its id until the name is known, and where the token may not read it. */
export const useProjectName = (id: string | null | undefined): string | undefined => {
  const maySee = useAllowed("operators:manage")
  const isAsked = maySee && id != null
  const project = useApi("/admin-ui/admin/projects/:id", { params: { id: id ?? "" } }, { enabled: isAsked })
  return project.data?.id === id ? project.data?.name : (id ?? undefined)
}

/** Finds a project by its name, its owner or its tags. */
export const ProjectPicker = ({ error, isFocused = false, name, onChange, value, ...input }: Props) => {
  const maySee = useAllowed("usage:read")
  const read = useProjectName(name == null ? value : undefined)
  const chosen = value === null ? undefined : shownText(name ?? read ?? value)
  const search = useTypedSearch(chosen)
  const found = useApi(
    "/admin-ui/admin/projects",
    { query: { ...search.query, limit: mostShown } },
    { enabled: maySee && search.isReached }
  )
  if (!maySee) {
    // a filter of a list, which has no label, is left out
    if (input.label === undefined) return null
    return (
      <TextInput
        placeholder="id"
        label={input.label}
        description={
          <>
            {input.description} Only a token with <code>usage:read</code> finds projects by their names: give the id.
          </>
        }
        disabled={input.disabled ?? false}
        value={value ?? ""}
        onChange={({ currentTarget }) => onChange(currentTarget.value.trim() || null, undefined)}
        error={error}
        {...(isFocused && { "data-autofocus": true })}
      />
    )
  }
  return (
    <SearchedSelect
      placeholder="name, owner or tag"
      {...input}
      search={search}
      found={found.data?.map((project) => ({ value: project.id, label: shownText(project.name) }))}
      isSearching={found.isFetching}
      value={value}
      chosen={chosen}
      onChange={(id) => onChange(id, found.data?.find((project) => project.id === id)?.name)}
      nothing="No project matches."
      isFocused={isFocused}
      error={error ?? found.error?.message}
    />
  )
}

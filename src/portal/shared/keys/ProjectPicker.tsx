import { Select, type SelectProps, TextInput } from "@mantine/core"
import { useDebouncedValue } from "@mantine/hooks"
import { useState } from "react"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { shownText } from "../foreign/marks.ts"

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

const typingMs = 200
const mostShown = 50

/** Reads the name of a project. It is its id until the name is known, and where the token may not read it. */
export const useProjectName = (id: string | null | undefined): string | undefined => {
  const maySee = useAllowed("operators:manage")
  const isAsked = maySee && id != null
  const project = useApi("/admin-ui/admin/projects/:id", { params: { id: id ?? "" } }, { enabled: isAsked })
  return project.data?.id === id ? project.data?.name : (id ?? undefined)
}

/** Finds a project by its name, its owner or its tags. The server searches, so that any number of projects may exist. */
export const ProjectPicker = ({ comboboxProps, error, isFocused = false, name, onChange, value, ...input }: Props) => {
  const maySee = useAllowed("usage:read")
  // a page with a field that nobody uses neither asks for projects nor draws them
  const [isReached, reach] = useState(false)
  const [typed, setTyped] = useState("")
  const [asked] = useDebouncedValue(typed.trim(), typingMs)
  const read = useProjectName(name == null ? value : undefined)
  const current = value === null ? undefined : shownText(name ?? read ?? value)
  // the field has the name of the chosen project, which is no search
  const q = asked === current ? "" : asked
  const found = useApi(
    "/admin-ui/admin/projects",
    { query: { ...(q !== "" && { q }), limit: mostShown } },
    { enabled: maySee && isReached }
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
  const options = (found.data ?? []).map((project) => ({ value: project.id, label: shownText(project.name) }))
  const isListed = options.some((option) => option.value === value)
  return (
    <Select
      placeholder="name, owner or tag"
      {...input}
      data={value === null || current === undefined || isListed ? options : [{ value, label: current }, ...options]}
      value={value}
      onChange={(id) => {
        setTyped("")
        onChange(id, found.data?.find((project) => project.id === id)?.name)
      }}
      onFocus={() => reach(true)}
      comboboxProps={{ ...comboboxProps, keepMounted: isReached }}
      onSearchChange={setTyped}
      filter={({ options }) => options}
      searchable
      error={error ?? found.error?.message}
      nothingFoundMessage={found.data === undefined || found.isFetching ? "Looking…" : "No project matches."}
      {...(isFocused && { "data-autofocus": true })}
    />
  )
}

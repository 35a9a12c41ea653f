import type { SelectProps } from "@mantine/core"
import { useDebouncedValue } from "@mantine/hooks"
import { useState } from "react"
import { LazySelect } from "../fields/LazySelect.tsx"

const typingMs = 200

export interface Choice {
  readonly value: string
  readonly label: string
}

/**
 * Returns `q`, the words that a person has typed into a field whose choices the server finds. The field also has the
 * label of what is chosen, which is no search. A field that nobody has reached asks for nothing.
 */
export const useTypedSearch = (chosen: string | undefined) => {
  const [typed, type] = useState("")
  const [asked] = useDebouncedValue(typed.trim(), typingMs)
  const [isReached, reach] = useState(false)
  const query = asked === "" || asked === chosen ? {} : { q: asked }
  return { query, isReached, type, reach: () => reach(true) }
}

interface Props extends Omit<SelectProps, "data" | "filter" | "onChange" | "onSearchChange" | "searchable" | "value"> {
  readonly search: Pick<ReturnType<typeof useTypedSearch>, "reach" | "type">
  /** The choices that the server has found. `undefined` until it has answered. */
  readonly found: ReadonlyArray<Choice> | undefined
  readonly isSearching: boolean
  readonly value: string | null
  /** The label of `value`, which need not be among the choices. */
  readonly chosen: string | undefined
  readonly onChange: (value: string | null) => void
  /** Said where nothing matches. */
  readonly nothing: string
  readonly isFocused?: boolean
}

/** Of the choice that a dialog begins with. Its list would cover what else the dialog says. */
export const focusedFirst = { "data-autofocus": true, openOnFocus: false } as const

/** A choice among more objects than a list can hold: the server finds them while a person types. */
export const SearchedSelect = (props: Props) => {
  const { chosen, found, isFocused = false, isSearching, nothing, onChange, search, value, ...input } = props
  const isListed = found?.some((choice) => choice.value === value) === true
  const own = value === null || isListed ? [] : [{ value, label: chosen ?? value }]
  return (
    <LazySelect
      {...input}
      data={[...own, ...(found ?? [])]}
      value={value}
      onChange={(next) => {
        search.type("")
        onChange(next)
      }}
      onFocus={search.reach}
      onSearchChange={search.type}
      filter={({ options }) => options}
      searchable
      nothingFoundMessage={found === undefined || isSearching ? "Looking…" : nothing}
      {...(isFocused && focusedFirst)}
    />
  )
}

import { Autocomplete, CloseButton } from "@mantine/core"
import { IconSearch } from "@tabler/icons-react"
import { useEffect, useRef, useState } from "react"
import { useTextSearch } from "../../address/search.ts"
import type { ApiError } from "../../api/ApiError.ts"
import { useLazyChoices } from "../../shared/fields/useLazyChoices.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { completionsOf, type KnownValues } from "./completions.ts"
import styles from "./Tasks.module.css"

interface Props {
  readonly known: KnownValues
  readonly error: ApiError | null
}

/** Takes an id, a word, or filters such as `status:failed since:2h`. Enter searches; a completion goes on. */
export const SearchBox = ({ error, known }: Props) => {
  const { change, text } = useTextSearch()
  const asked = text("q") ?? ""
  const [typed, setTyped] = useState(asked)
  const { choices, reach } = useLazyChoices()
  useEffect(() => setTyped(asked), [asked])
  const refused = error?.status === 422 ? error : null
  const search = (wanted: string) => change({ q: wanted.trim() || undefined, open: undefined })
  // the keys of the table are letters: they would be written into a field that keeps the focus
  const input = useRef<HTMLInputElement>(null)
  return (
    <search className={styles.search}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          search(typed)
          input.current?.blur()
        }}
      >
        <Autocomplete
          ref={input}
          aria-label="Search tasks"
          placeholder="An id, a word, or type:read status:failed since:2h   /"
          size="sm"
          value={typed}
          onChange={setTyped}
          onFocus={reach}
          data={completionsOf(typed, known)}
          // the completions are already those that fit
          filter={({ options }) => options}
          renderOption={({ option }) => (
            <ForeignText>
              {option.value
                .trim()
                .split(/\s(?=(?:[^"]*"[^"]*")*[^"]*$)/)
                .at(-1)}
            </ForeignText>
          )}
          limit={8}
          comboboxProps={{ withinPortal: false, ...choices }}
          autoSelectOnBlur={false}
          leftSection={<IconSearch size={15} />}
          rightSection={
            typed === "" ? null : (
              <CloseButton
                size="sm"
                aria-label="Clear the search"
                onClick={() => {
                  setTyped("")
                  search("")
                }}
              />
            )
          }
          error={refused?.fields.map(({ field, message }) => `${field} ${message}`).join("; ")}
          data-filter
          enterKeyHint="search"
          autoCapitalize="off"
          spellCheck={false}
        />
      </form>
    </search>
  )
}

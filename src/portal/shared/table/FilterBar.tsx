import { CloseButton, TextInput } from "@mantine/core"
import { IconFilter } from "@tabler/icons-react"
import { useState } from "react"
import { useTextSearch } from "../../address/search.ts"
import { useTyped } from "../../address/useTyped.ts"
import { LazySelect } from "../fields/LazySelect.tsx"
import { shownText } from "../foreign/marks.ts"
import { ProjectPicker } from "../keys/ProjectPicker.tsx"
import styles from "./FilterBar.module.css"

export interface Filter {
  /** Its name in the address, which is that of the API. */
  readonly name: string
  readonly label: string
  /** Without choices it is a text. */
  readonly choices?: ReadonlyArray<string | { readonly value: string; readonly label: string }>
  readonly placeholder?: string
  /** The server searches the projects. */
  readonly isProject?: boolean
}

interface Props {
  readonly filters: ReadonlyArray<Filter>
}

/** The filters of a list. They are in the address, so that a link shows the same rows. */
export const FilterBar = ({ filters }: Props) => {
  const { change, text } = useTextSearch()
  return (
    // biome-ignore lint/a11y/useSemanticElements: `search` holds more than one form
    <div role="search" className={styles.bar}>
      {filters.map(({ choices, isProject = false, label, name, placeholder }, place) =>
        isProject ? (
          <ProjectPicker
            key={name}
            aria-label={label}
            placeholder={label}
            value={text(name) ?? null}
            onChange={(value) => change({ [name]: value ?? undefined })}
            clearable
            w={150}
          />
        ) : choices === undefined ? (
          <TextFilter
            key={name}
            label={label}
            placeholder={placeholder ?? label}
            value={text(name) ?? ""}
            onChange={(value) => change({ [name]: value })}
            isFirst={place === 0}
          />
        ) : (
          <ChoiceFilter
            key={name}
            label={label}
            choices={choices}
            value={text(name)}
            onChange={(value) => change({ [name]: value })}
            isFirst={place === 0}
          />
        )
      )}
    </div>
  )
}

/**
 * The width of a control that shows one of these texts. A letter takes about half of its height. It is found once: texts
 * that come later, as the names of projects do, must not move the page.
 */
const useWidthOf = (texts: ReadonlyArray<string>, least: number, most: number): string =>
  useState(() => {
    const longest = Math.max(...texts.map((text) => [...text].length))
    return `clamp(${least}px, ${(longest * 0.56).toFixed(1)}em + 58px, ${most}px)`
  })[0]

interface ChoiceProps {
  readonly label: string
  readonly choices: NonNullable<Filter["choices"]>
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
  readonly isFirst: boolean
}

const ChoiceFilter = ({ choices, isFirst, label, onChange, value }: ChoiceProps) => {
  const data = choices.map((one) =>
    typeof one === "string" ? { value: one, label: one } : { value: one.value, label: shownText(one.label) }
  )
  const width = useWidthOf([label, ...data.map((one) => one.label)], 150, 220)
  return (
    <LazySelect
      aria-label={label}
      placeholder={label}
      data={data}
      value={value ?? null}
      onChange={(chosen) => onChange(chosen ?? undefined)}
      clearable
      searchable={choices.length > 8}
      w={width}
      maw="100%"
      {...(isFirst && { "data-filter": true, title: `${label} (/)` })}
    />
  )
}

interface TextProps {
  readonly label: string
  readonly placeholder: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly isFirst: boolean
}

const TextFilter = ({ isFirst, label, onChange, placeholder, value }: TextProps) => {
  const { type, typed } = useTyped(value, onChange)
  // the key that leads to the first one stands after its words
  const words = isFirst ? `${placeholder}  /` : placeholder
  const width = useWidthOf([words], isFirst ? 240 : 160, 300)
  return (
    <TextInput
      aria-label={label}
      placeholder={words}
      value={typed}
      onChange={(event) => type(event.currentTarget.value)}
      leftSection={<IconFilter size={13} />}
      rightSection={
        typed === "" ? null : <CloseButton size="xs" aria-label={`Clear ${label}`} onClick={() => type("")} />
      }
      w={width}
      maw="100%"
      {...(isFirst && { "data-filter": true })}
    />
  )
}

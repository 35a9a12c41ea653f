import { Select, type SelectProps } from "@mantine/core"
import { useLazyChoices } from "./useLazyChoices.ts"

/** A `Select` that draws its choices from the first focus on. */
export const LazySelect = ({ comboboxProps, onFocus, ...props }: SelectProps) => {
  const { choices, reach } = useLazyChoices()
  return (
    <Select
      {...props}
      onFocus={(event) => {
        reach()
        onFocus?.(event)
      }}
      comboboxProps={{ ...comboboxProps, ...choices }}
    />
  )
}

import { Select, type SelectProps } from "@mantine/core"
import { useState } from "react"

/**
 * A `Select` whose choices are there from the first focus on: the keyboard and readers of the screen need them before the
 * list opens. Mantine draws and measures them with the page, and a page has many of them.
 */
export const LazySelect = ({ comboboxProps, onFocus, ...props }: SelectProps) => {
  const [isReached, reach] = useState(false)
  return (
    <Select
      {...props}
      onFocus={(event) => {
        reach(true)
        onFocus?.(event)
      }}
      comboboxProps={{ ...comboboxProps, keepMounted: isReached }}
    />
  )
}

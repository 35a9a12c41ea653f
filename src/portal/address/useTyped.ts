import { useDebouncedCallback } from "@mantine/hooks"
import { useEffect, useRef, useState } from "react"

/**
 * The text of a field that is kept elsewhere, such as in the address, which follows a moment after the last letter: what
 * a person types next is not overwritten by what is kept meanwhile.
 */
export const useTyped = (value: string, onChange: (value: string) => void) => {
  const [typed, setTyped] = useState(value)
  const reported = useRef(value)
  useEffect(() => {
    if (value === reported.current) return
    reported.current = value
    setTyped(value)
  }, [value])
  const report = useDebouncedCallback((text: string) => {
    reported.current = text
    onChange(text)
  }, 250)
  const type = (text: string) => {
    setTyped(text)
    report(text)
  }
  return { typed, type }
}

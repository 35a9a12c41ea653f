import { useState } from "react"

interface Choice<Kept, Value> {
  readonly value: Value
  readonly instead: Kept
}

/**
 * The choice of a control that is kept elsewhere, such as in the address: it shows at once, and what is kept follows.
 * `onChange` keeps every choice; one that it refused would be shown all the same.
 */
export const useChosen = <Kept, Value extends Kept>(kept: Kept, onChange: (value: Value) => void) => {
  const [choice, setChoice] = useState<Choice<Kept, Value>>()
  if (choice !== undefined && choice.instead !== kept) setChoice(undefined)
  const choose = (value: Value) => {
    setChoice({ value, instead: kept })
    onChange(value)
  }
  const chosen: Kept = choice !== undefined && choice.instead === kept ? choice.value : kept
  return { chosen, choose }
}

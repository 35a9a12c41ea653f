import { useState } from "react"

/**
 * The choices of a field are drawn from its first focus on: the keyboard and readers of the screen need them before the list
 * opens. Mantine draws and measures those of every closed field with the page.
 */
export const useLazyChoices = () => {
  const [isReached, reach] = useState(false)
  return { reach: () => reach(true), choices: { keepMounted: isReached } }
}

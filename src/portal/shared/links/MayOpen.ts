import { createContext } from "react"

/**
 * Says whether the token may see the page of a path. A link to any other page is text, and a button is not there. The frame
 * around the pages knows what each of them needs.
 */
export const MayOpen = createContext<(path: string) => boolean>(() => true)

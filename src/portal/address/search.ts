import { useNavigate } from "@tanstack/react-router"
import { useFollowedSearch } from "./FollowedAddress.tsx"

/** What every page takes from its address. */
export interface SharedSearch {
  /** See `range.ts`. */
  readonly range?: string
  /** Times are shown in UTC instead of the time zone of the browser. */
  readonly utc?: boolean
}

export const readShared = (search: Readonly<Record<string, unknown>>): SharedSearch => ({
  ...(typeof search["range"] === "string" && { range: search["range"] }),
  ...(search["utc"] === true && { utc: true })
})

/**
 * Makes what a page takes from its address: texts with these names, and `open`, the id of what the drawer shows. So one
 * address is one view.
 */
export const textSearch =
  <const Names extends ReadonlyArray<string>>(...names: Names) =>
  (search: Readonly<Record<string, unknown>>): { readonly [Name in Names[number] | "open"]?: string } => {
    const found: { [Name in Names[number] | "open"]?: string } = {}
    const all: ReadonlyArray<Names[number] | "open"> = [...names, "open"]
    for (const name of all) {
      const value = search[name]
      // the router reads `?q=5` as a number
      if ((typeof value === "string" && value !== "") || typeof value === "number" || typeof value === "boolean")
        found[name] = String(value)
    }
    return found
  }

/** Returns the texts of the address that the page declared, and what changes them. */
export const useTextSearch = () => {
  const search = useFollowedSearch()
  const navigate = useNavigate()
  const text = (name: string): string | undefined => {
    const value = search[name]
    return typeof value === "string" ? value : undefined
  }
  /** `undefined` and an empty text remove a name. Filters replace the entry of the history, `open` makes one. */
  const change = (texts: Readonly<Record<string, string | undefined>>) =>
    void navigate({
      to: ".",
      search: (before) => {
        const after: Record<string, unknown> = { ...before, ...texts }
        for (const [name, value] of Object.entries(texts)) if (value === undefined || value === "") delete after[name]
        return after
      },
      replace: !("open" in texts)
    })
  return { text, change }
}

import { useMatches, useRouter } from "@tanstack/react-router"
import { createContext, type ReactNode, use, useDeferredValue, useEffect, useMemo, useRef } from "react"

/** An address, as far as its page reads it. */
interface Address {
  readonly pathname: string
  readonly search: Readonly<Record<string, unknown>>
}

const Followed = createContext<Address | undefined>(undefined)

/**
 * The page below follows the address a moment later. The router tells of a new address in a way that React draws at
 * once, however long that takes, and a person who presses a key meanwhile waits. React draws what is deferred piece by
 * piece instead, and looks after the person in between.
 */
export const FollowAddress = ({ children }: { readonly children: ReactNode }) => {
  const address = useAddress()
  const followed = useDeferredValue(address)
  const isSamePage = followed.pathname === address.pathname
  const isNew = useIsNewEntry()
  return (
    <Followed value={isSamePage || isNew.current ? followed : address}>
      {isSamePage || !isNew.current ? children : <Blank />}
    </Followed>
  )
}

/** As high as the window at least: a scroll bar that went and came back would move the frame. */
const Blank = () => <div style={{ minHeight: "100vh" }} />

const useAddress = (): Address => {
  // the innermost match has the search of the others, too
  const match = useMatches({ select: (matches) => matches.at(-1) })
  const pathname = match?.pathname ?? "/"
  const search = match?.search
  return useMemo(() => ({ pathname, search: { ...search } }), [pathname, search])
}

/** Its `current` is false after a step back or forth: such a page is drawn at once, because the router scrolls to the place that it had. */
const useIsNewEntry = () => {
  const { history } = useRouter()
  const isNew = useRef(false)
  useEffect(
    () =>
      history.subscribe(({ action }) => {
        isNew.current = action.type === "PUSH"
      }),
    [history]
  )
  return isNew
}

/** Returns what the address has after its question mark, as the page around follows it. */
export const useFollowedSearch = (): Readonly<Record<string, unknown>> => {
  const followed = use(Followed)
  if (followed === undefined) throw new Error("nothing around this part follows the address: see FollowAddress")
  return followed.search
}

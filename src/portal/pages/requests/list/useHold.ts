import { type FocusEvent, useEffect, useEffectEvent, useRef } from "react"

/**
 * Tells when a reader is at work with the rows of a list: the pointer is over it, a row has the focus, or it is
 * scrolled. Then nothing may move.
 */
export const useHold = (onHold: (isHeld: boolean) => void) => {
  const reasons = useRef(new Set<string>())
  const scrolled = useRef<Element>(undefined)
  const change = (reason: string, isHeld: boolean) => {
    const before = reasons.current.size > 0
    if (isHeld) reasons.current.add(reason)
    else reasons.current.delete(reason)
    const after = reasons.current.size > 0
    if (before !== after) onHold(after)
  }
  const scroll = useEffectEvent(() => change("page", window.scrollY > farPx))
  useEffect(() => {
    const listener = () => scroll()
    window.addEventListener("scroll", listener, { passive: true })
    return () => window.removeEventListener("scroll", listener)
  }, [])
  return {
    /** Ends the hold by scrolling, such as for a click on "12 new". */
    toTop: () => {
      scrolled.current?.scrollTo({ top: 0 })
      if (window.scrollY > farPx) window.scrollTo({ top: 0 })
    },
    props: {
      onPointerEnter: () => change("pointer", true),
      onPointerLeave: () => change("pointer", false),
      onFocusCapture: ({ target }: FocusEvent) => change("focus", isInRows(target)),
      onBlurCapture: ({ currentTarget, relatedTarget }: FocusEvent) =>
        change("focus", currentTarget.contains(relatedTarget) && isInRows(relatedTarget)),
      onScrollCapture: ({ target }: { readonly target: EventTarget }) => {
        if (!(target instanceof Element)) return
        scrolled.current = target
        change("rows", target.scrollTop > 0)
      }
    }
  } as const
}

/** The page may be scrolled so far before its rows count as being read. */
const farPx = 120

const isInRows = (target: EventTarget | null): boolean => target instanceof Element && target.closest("tbody") !== null

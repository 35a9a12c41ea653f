import { useEffect, useRef } from "react"

/** A session ends with the secret that it began with. A new secret is shown once, so nothing may take its page away. */

let held = 0
let begun = 0
let waiting: ReadonlyArray<() => void> = []

/** Returns what ends the hold. */
const hold = (): (() => void) => {
  held++
  begun++
  let isHeld = true
  return () => {
    if (!isHeld) return
    isHeld = false
    held--
    if (held > 0) return
    for (const go of waiting) go()
    waiting = []
  }
}

/** Keeps the page from `hold` until `release`, or until the component is gone. */
export const useHeldSession = () => {
  const release = useRef(() => {})
  useEffect(() => () => release.current(), [])
  return {
    hold: () => {
      release.current = hold()
    },
    release: () => release.current()
  }
}

export const untilNotHeld = (): Promise<void> =>
  held === 0 ? Promise.resolve() : new Promise((go) => (waiting = [...waiting, go]))

/** Counts how often a session was held. An answer that was asked for before another hold may be about the former session. */
export const holdsBegun = (): number => begun

import { notifications } from "@mantine/notifications"
import { useBlocker } from "@tanstack/react-router"
import { useEffect } from "react"

const unstored = new Set<object>()

/** Returns whether no secret would be lost with the part of the page that shows it. If one would be, it says so. */
export const mayLeaveSecrets = (): boolean => {
  if (unstored.size === 0) return true
  notifications.show({ id: "unstored", message: "Store the new secret first: it is shown this one time." })
  return false
}

/**
 * Keeps the page while a new secret is under way or nobody has stored it yet. It is told once, so that whoever leaves
 * the page before has lost it.
 */
export const useUnstoredSecret = (isUnstored: boolean): void => {
  useEffect(() => {
    if (!isUnstored) return
    const secret = {}
    unstored.add(secret)
    return () => {
      unstored.delete(secret)
    }
  }, [isUnstored])
  useBlocker({
    disabled: !isUnstored,
    enableBeforeUnload: isUnstored,
    shouldBlockFn: ({ current, next }) => current.pathname !== next.pathname && !mayLeaveSecrets()
  })
}

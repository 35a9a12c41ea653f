import { notifications } from "@mantine/notifications"
import { useBlocker } from "@tanstack/react-router"

/**
 * Keeps the page while a new secret is under way or nobody has stored it yet. It is told once, so that whoever leaves
 * the page before has lost it.
 */
export const useUnstoredSecret = (isUnstored: boolean): void => {
  useBlocker({
    disabled: !isUnstored,
    enableBeforeUnload: isUnstored,
    shouldBlockFn: ({ current, next }) => {
      if (current.pathname === next.pathname) return false
      notifications.show({ id: "unstored", message: "Store the new secret first: it is shown this one time." })
      return true
    }
  })
}

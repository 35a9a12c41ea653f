import { notifications } from "@mantine/notifications"
import { useQueryClient } from "@tanstack/react-query"
import { useEffect, useRef } from "react"
import { useLiveState } from "../api/live.ts"

/** A shorter loss is not worth a word: the connection also begins with one. */
const noticedMs = 2_000

/** Says that the server is back after it was away, as after a restart, and reads again what could not be read. */
export const ConnectionNotice = () => {
  const state = useLiveState()
  const queries = useQueryClient()
  const lostAt = useRef<number | undefined>(undefined)
  useEffect(() => {
    if (state === "reconnecting") lostAt.current ??= Date.now()
    if (state === "paused" || state === "off") lostAt.current = undefined
    if (state !== "live" || lostAt.current === undefined) return
    const wasNoticed = Date.now() - lostAt.current > noticedMs
    lostAt.current = undefined
    if (!wasNoticed) return
    void queries.invalidateQueries()
    notifications.show({ message: "The server is back. What was missed is shown now." })
  }, [queries, state])
  return null
}

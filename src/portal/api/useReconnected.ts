import { useQueryClient } from "@tanstack/react-query"
import { useEffect, useEffectEvent, useRef } from "react"
import { useLiveState } from "./live.ts"

/** A shorter loss is not worth a word: the connection also begins with one. */
const noticedMs = 2_000

/** Calls `onBack` when the server is back after it was away, as after a restart. Everything that is shown is read again. */
export const useReconnected = (onBack: () => void): void => {
  const state = useLiveState()
  const queries = useQueryClient()
  const lostAt = useRef<number | undefined>(undefined)
  const say = useEffectEvent(onBack)
  useEffect(() => {
    if (state === "reconnecting") lostAt.current ??= Date.now()
    if (state === "paused" || state === "off") lostAt.current = undefined
    if (state !== "live" || lostAt.current === undefined) return
    const wasNoticed = Date.now() - lostAt.current > noticedMs
    lostAt.current = undefined
    if (!wasNoticed) return
    void queries.invalidateQueries()
    say()
  }, [queries, state])
}

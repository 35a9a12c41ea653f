import { useQueryClient } from "@tanstack/react-query"
import { useEffect, useEffectEvent, useRef } from "react"
import { useLiveState } from "./live.ts"

/** A shorter loss is not worth a word. */
const noticedMs = 2_000

/** Calls `onBack` when the server is back after it was away, as after a restart. Everything that is shown is read again. */
export const useReconnected = (onBack: () => void): void => {
  const state = useLiveState()
  const queries = useQueryClient()
  const lostAt = useRef<number | undefined>(undefined)
  // the first connection may take long, and nothing was lost before it
  const wasLive = useRef(false)
  const say = useEffectEvent(onBack)
  useEffect(() => {
    if (state === "reconnecting" && wasLive.current) lostAt.current ??= Date.now()
    if (state === "paused" || state === "off") lostAt.current = undefined
    wasLive.current = state === "live" || state === "reset" || (wasLive.current && state === "reconnecting")
    if (state !== "live" || lostAt.current === undefined) return
    const wasNoticed = Date.now() - lostAt.current > noticedMs
    lostAt.current = undefined
    if (!wasNoticed) return
    void queries.invalidateQueries()
    say()
  }, [queries, state])
}

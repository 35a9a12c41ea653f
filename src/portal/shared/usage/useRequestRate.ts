import { useEffect, useEffectEvent, useRef, useState } from "react"
import { useLive } from "../../api/live.ts"
import type { TimePoint } from "../charts/series.ts"

export const rateSeries = [
  { key: "sent", label: "sent upstream", color: "var(--series-1)" },
  { key: "refused", label: "refused", color: "var(--series-6)" }
] as const

const secondMs = 1_000

/** Requests that ended, by the second, for the last two minutes that this page has seen. */
export const useRequestRate = (seconds = 120): ReadonlyArray<TimePoint> => {
  const counts = useRef(new Map<number, { sent: number; refused: number }>())
  const begun = useRef(Math.floor(Date.now() / secondMs))
  const [points, setPoints] = useState<ReadonlyArray<TimePoint>>([])

  useLive(({ requests }) => {
    const now = Math.floor(Date.now() / secondMs)
    const count = counts.current.get(now) ?? { sent: 0, refused: 0 }
    counts.current.set(now, {
      sent: count.sent + (requests?.["ended"]?.count ?? 0),
      refused: count.refused + (requests?.["refused"]?.count ?? 0)
    })
  })

  const turn = useEffectEvent(() => {
    if (document.hidden) return
    // the current second is not over
    const last = Math.floor(Date.now() / secondMs) - 1
    for (const second of counts.current.keys()) if (second <= last - seconds) counts.current.delete(second)
    setPoints(
      Array.from({ length: seconds }, (_, place) => {
        const second = last - seconds + 1 + place
        const absent = second < begun.current ? null : 0
        const { refused = absent, sent = absent } = counts.current.get(second) ?? {}
        return { at: second * secondMs, values: { sent, refused } }
      })
    )
  })
  useEffect(() => {
    turn()
    const timer = window.setInterval(() => turn(), secondMs)
    return () => window.clearInterval(timer)
  }, [])
  return points
}

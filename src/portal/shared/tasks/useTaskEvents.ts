import { useEffect, useEffectEvent, useRef } from "react"
import { type Digest, useLive } from "../../api/live.ts"

/** Among very many events, those of one task need not be told: then it is looked at so often. */
const lookEveryMs = 2_000

/** Calls `onChange` when something happens to the task, and when it may have. */
export const useTaskEvents = (taskId: string | null | undefined, onChange: () => void): void => {
  const timer = useRef<number>(undefined)
  const change = useEffectEvent(onChange)
  useLive(({ dead_letters, tasks }) => {
    const digests: ReadonlyArray<Digest> = [tasks, dead_letters].flatMap((topic) => Object.values(topic ?? {}))
    if (digests.some(({ latest }) => latest.some((one) => one["task_id"] === taskId))) return change()
    if (digests.every(({ count, latest }) => count <= latest.length)) return
    timer.current ??= window.setTimeout(() => {
      timer.current = undefined
      change()
    }, lookEveryMs)
  }, onChange)
  useEffect(() => () => window.clearTimeout(timer.current), [])
}

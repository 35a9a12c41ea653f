import { useEffect, useRef, useState } from "react"
import { withQuery } from "../../../api/http.ts"
import { useIsPaused } from "../../../api/live.ts"
import type { Explanation, History, StatusEvent } from "../../../api/TaskTypes.ts"
import { callTasks, taskPath, tasksPath } from "../../../api/tasks.ts"

/**
 * - `replaying`: stored statuses arrive. `live`: all of them are there, and new ones follow.
 * - `ended`: the task has ended, so that no more will come.
 * - `paused`: the tab is hidden, or the person has paused. What is missed arrives afterwards.
 */
export type StreamState = "connecting" | "replaying" | "live" | "ended" | "lost" | "paused"

interface Stream {
  readonly state: StreamState
  readonly events: ReadonlyArray<StatusEvent>
  /** Why the server began anew: what was shown before is not complete. */
  readonly reset: string | undefined
}

const empty: Stream = { state: "connecting", events: [], reset: undefined }
/** Statuses that arrive together are drawn together. */
const drawEveryMs = 150
const closed = 2
/** The browser itself connects again, but not once the server has refused, as it does while it starts. */
const retryMs = 3_000
const hasEnded: ReadonlySet<Explanation["verdict"]> = new Set(["finished", "dead_lettered"])

/** Follows the event stream of a task: first what is stored, then what happens. */
export const useStatusStream = (taskId: string): Stream => {
  const [stream, setStream] = useState(empty)
  const reader = useRef<StatusStream>(undefined)
  const isPaused = useIsPaused()
  useEffect(() => {
    setStream(empty)
    const made = new StatusStream(taskId, setStream)
    reader.current = made
    return () => made.close()
  }, [taskId])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the stream of another task begins, too
  useEffect(() => {
    if (isPaused) reader.current?.pause()
    else reader.current?.follow()
  }, [taskId, isPaused])
  return stream
}

class StatusStream {
  private readonly taskId: string
  private readonly draw: (stream: Stream) => void
  private source: EventSource | undefined
  /** The id of the latest status that has arrived. The next connection goes on after it. */
  private lastId: string | undefined
  private events: Array<StatusEvent> = []
  private reset: string | undefined
  private state: StreamState = "connecting"
  private timer: number | undefined
  private retry: number | undefined
  /** The id of the status that was the latest when the stream began. */
  private latest: string | undefined

  constructor(taskId: string, draw: (stream: Stream) => void) {
    this.taskId = taskId
    this.draw = draw
  }

  close(): void {
    this.disconnect()
    window.clearTimeout(this.timer)
  }

  pause(): void {
    if (this.state === "ended") return
    this.disconnect()
    this.become("paused")
  }

  /** Goes on after the last status that has arrived. */
  follow(): void {
    if (this.state === "ended" || this.source !== undefined) return
    if (this.state === "paused") this.become("connecting")
    this.connect()
  }

  private disconnect(): void {
    this.source?.close()
    this.source = undefined
    window.clearTimeout(this.retry)
  }

  private connect(): void {
    const path = tasksPath + taskPath`/events/${this.taskId}`
    const source = new EventSource(withQuery(path, { last_event_id: this.lastId }))
    this.source = source
    source.addEventListener("ready", () => void this.begin(source))
    source.addEventListener("status", ({ data, lastEventId }) => this.take(JSON.parse(data), lastEventId))
    source.addEventListener("reset", ({ data }) => this.startAnew(JSON.parse(data)))
    source.onerror = () => void this.interrupted(source)
  }

  /** The server says what it has stored, so that the end of the replay is known. */
  private async begin(source: EventSource): Promise<void> {
    this.become("replaying")
    const history = await callTasks<History>("GET", "/history", { query: { task_id: this.taskId } }).catch(
      () => undefined
    )
    if (this.source !== source) return
    this.latest = history?.events.at(-1)?.event_id
    if (history?.events.length === 0) this.become("live")
    else this.notice()
  }

  private take(event: StatusEvent, id: string): void {
    this.lastId = id
    this.events.push(event)
    this.notice()
  }

  private startAnew({ message }: { readonly message?: string }): void {
    this.events = []
    this.reset = message ?? "The history begins anew."
    this.become("replaying")
  }

  private notice(): void {
    const isThere = this.latest === undefined || this.events.some(({ event_id }) => event_id === this.latest)
    this.become(isThere && this.events.length > 0 ? "live" : this.state)
  }

  /** The server ends the stream with the task. The browser would ask again and again. */
  private async interrupted(source: EventSource): Promise<void> {
    if (source.readyState === closed) {
      this.become("lost")
      this.retry = window.setTimeout(() => this.connect(), retryMs)
      return
    }
    const explanation = await callTasks<Explanation>("GET", taskPath`/executions/${this.taskId}/explain`).catch(
      () => undefined
    )
    if (this.source !== source) return
    if (explanation !== undefined && hasEnded.has(explanation.verdict)) {
      // what has arrived since the last drawing is still to be drawn
      this.disconnect()
      this.become("ended")
    } else this.become("lost")
  }

  private become(state: StreamState): void {
    this.state = state
    this.timer ??= window.setTimeout(() => {
      this.timer = undefined
      this.draw({ state: this.state, events: [...this.events], reset: this.reset })
    }, drawEveryMs)
  }
}

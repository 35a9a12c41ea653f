import { useEffect, useState } from "react"
import type { Explanation, History, StatusEvent } from "../../../api/TaskTypes.ts"
import { callTasks, taskPath, tasksPath } from "../../../api/tasks.ts"

/**
 * - `replaying`: stored statuses arrive. `live`: all of them are there, and new ones follow.
 * - `ended`: the task has ended, so that no more will come.
 */
export type StreamState = "connecting" | "replaying" | "live" | "ended" | "lost"

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
  useEffect(() => {
    setStream(empty)
    const reader = new StatusStream(taskId, setStream)
    return () => reader.close()
  }, [taskId])
  return stream
}

class StatusStream {
  private readonly taskId: string
  private readonly draw: (stream: Stream) => void
  private source: EventSource
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
    this.source = this.connect()
  }

  close(): void {
    this.source.close()
    window.clearTimeout(this.timer)
    window.clearTimeout(this.retry)
  }

  private connect(): EventSource {
    const source = new EventSource(tasksPath + taskPath`/events/${this.taskId}`)
    let isFirst = true
    source.addEventListener("ready", () => {
      // when the browser connects again, only what is new arrives
      if (isFirst) this.events = []
      isFirst = false
      void this.begin()
    })
    source.addEventListener("status", ({ data }) => this.take(JSON.parse(data)))
    source.addEventListener("reset", ({ data }) => this.startAnew(JSON.parse(data)))
    source.onerror = () => void this.interrupted()
    return source
  }

  /** The server says what it has stored, so that the end of the replay is known. */
  private async begin(): Promise<void> {
    this.become("replaying")
    const history = await callTasks<History>("GET", "/history", { query: { task_id: this.taskId } }).catch(
      () => undefined
    )
    this.latest = history?.events.at(-1)?.event_id
    this.notice()
  }

  private take(event: StatusEvent): void {
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
  private async interrupted(): Promise<void> {
    if (this.source.readyState === closed) {
      this.become("lost")
      this.retry = window.setTimeout(() => {
        this.source = this.connect()
      }, retryMs)
      return
    }
    const explanation = await callTasks<Explanation>("GET", taskPath`/executions/${this.taskId}/explain`).catch(
      () => undefined
    )
    if (explanation !== undefined && hasEnded.has(explanation.verdict)) {
      // what has arrived since the last drawing is still to be drawn
      this.source.close()
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

import { type IncomingMessage, request } from "node:http"
import { Effect } from "effect"
import { eventually } from "../Eventually.ts"

export interface Frame {
  readonly id?: string
  readonly event?: string
  readonly data?: string
}

/** A client of an event stream on a socket of its own. */
export class EventClient {
  status = 0
  headers: IncomingMessage["headers"] = {}
  /** Everything that came. */
  text = ""
  ended = false
  readonly #destroy: () => void
  #answer: IncomingMessage | undefined

  constructor(url: string, headers: Readonly<Record<string, string>>) {
    const asked = request(url, { headers, agent: false }, (answer) => {
      this.#answer = answer
      this.status = answer.statusCode ?? 0
      this.headers = answer.headers
      answer.setEncoding("utf8")
      answer.on("data", (text: string) => {
        this.text += text
      })
      answer.on("end", () => {
        this.ended = true
      })
      answer.on("error", () => {})
    })
    asked.on("error", () => {})
    asked.end()
    this.#destroy = () => asked.destroy()
  }

  get frames(): ReadonlyArray<Frame> {
    return this.text
      .split("\n\n")
      .slice(0, -1)
      .map((block) =>
        Object.fromEntries(
          block
            .split("\n")
            .filter((line) => !line.startsWith(":"))
            .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)])
        )
      )
      .filter((frame) => Object.keys(frame).length > 0)
  }

  /** The ids of the statuses that came. */
  get ids(): ReadonlyArray<string | undefined> {
    return this.frames.flatMap(({ event, id }) => (event === "status" ? [id] : []))
  }

  get lastEventId(): string | undefined {
    return this.frames.findLast(({ id }) => id !== undefined)?.id
  }

  until(holds: (client: EventClient) => boolean): Effect.Effect<void> {
    return Effect.asVoid(
      eventually(
        Effect.sync(() => ({ text: this.text.slice(-500), ended: this.ended, holds: holds(this) })),
        ({ holds }) => holds
      )
    )
  }

  pause(): void {
    this.#answer?.pause()
  }

  resume(): void {
    this.#answer?.resume()
  }

  hangUp(): void {
    this.#destroy()
  }
}

export const connect = (url: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.acquireRelease(
    Effect.sync(() => new EventClient(url, headers)),
    (client) => Effect.sync(() => client.hangUp())
  )

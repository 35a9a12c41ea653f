import { SseClient, type SseTimes } from "../../http/SseClient.ts"
import * as SseFrames from "../../http/SseFrames.ts"
import * as Digest from "../../live/Digest.ts"
import type { Topic } from "../../live/Topics.ts"
import * as LivePosition from "./LivePosition.ts"

/** A delivery has the occurrences of each topic since the last one. All listeners share one delivery, and the frames of it. */
export class Delivery {
  readonly digests: ReadonlyMap<Topic, Digest.Digest>
  readonly #frames = new Map<string, string>()

  constructor(digests: ReadonlyMap<Topic, Digest.Digest>) {
    this.digests = digests
  }

  hasAny(topics: ReadonlyArray<Topic>): boolean {
    return topics.some((topic) => this.digests.has(topic))
  }

  frame(topics: ReadonlyArray<Topic>, id: string): string {
    const known = this.#frames.get(id)
    if (known !== undefined) return known
    const data = Object.fromEntries(
      topics.flatMap((topic) => {
        const digest = this.digests.get(topic)
        return digest === undefined ? [] : [[topic, digest]]
      })
    )
    const frame = SseFrames.event("live", JSON.stringify(data), id)
    this.#frames.set(id, frame)
    return frame
  }

  merge(later: Delivery, topics: ReadonlyArray<Topic>): Delivery {
    const merged = new Map<Topic, Digest.Digest>()
    for (const topic of topics) {
      const [before, after] = [this.digests.get(topic), later.digests.get(topic)]
      const digest = before && after ? Digest.merge(before, after, detailsPerFrame) : (before ?? after)
      if (digest !== undefined) merged.set(topic, digest)
    }
    return new Delivery(merged)
  }
}

/** The occurrences of one kind that a frame describes. */
export const detailsPerFrame = 20

/** Why batches are missing. */
export type ResetReason = "gone" | "unknown_position"

/** One open stream. What it has not sent yet is folded into one delivery, so that it needs little memory. */
export class LiveListener extends SseClient {
  readonly topics: ReadonlyArray<Topic>
  /** The position to resume from, by topic. Other topics begin now. */
  readonly resume: LivePosition.LivePosition
  hasBegun = false
  hasSaidEnd = false
  #hasJoined = false
  #position: LivePosition.LivePosition = new Map()
  #pending: Delivery | undefined
  #resets = new Map<Topic, ResetReason>()
  #readiness: "waiting" | "due" | "sent" = "waiting"
  #ended: string | undefined

  constructor(topics: ReadonlyArray<Topic>, resume: LivePosition.LivePosition, times: SseTimes, now: number) {
    super(times, now)
    this.topics = topics
    this.resume = resume
  }

  /** True once the listener has a position. It gets no event before. */
  get hasJoined(): boolean {
    return this.#hasJoined
  }

  /** Begins at `position`, with what the listener has missed before. */
  join(missed: Delivery, position: LivePosition.LivePosition): void {
    this.#hasJoined = true
    this.offer(missed, position)
    this.wake()
  }

  /** Adds what happened until `position`. */
  offer(delivery: Delivery, position: LivePosition.LivePosition): void {
    this.#position = position
    if (!delivery.hasAny(this.topics)) return
    this.#pending = this.#pending?.merge(delivery, this.topics) ?? delivery
    this.wake()
  }

  reset(topic: Topic, reason: ResetReason): void {
    this.#resets.set(topic, reason)
    this.wake()
  }

  /** From now on all processes tell what happens. */
  ready(): void {
    if (this.#readiness !== "waiting") return
    this.#readiness = "due"
    this.wake()
  }

  get isReady(): boolean {
    return this.#readiness !== "waiting"
  }

  /** Ends the stream after one more event, which names the reason. */
  end(message: string): void {
    this.#ended = message
    this.wake()
  }

  /** Returns everything that is to be sent now. */
  take(): ReadonlyArray<string> {
    if (this.#ended !== undefined) {
      this.hasSaidEnd = true
      return [SseFrames.event("end", JSON.stringify({ message: this.#ended }))]
    }
    if (!this.#hasJoined) return []
    const id = this.#id()
    const frames: Array<string> = []
    if (this.#resets.size > 0) frames.push(resetFrame(this.#resets, id))
    if (this.#pending !== undefined) frames.push(this.#pending.frame(this.topics, id))
    if (this.#readiness === "due") {
      frames.push(SseFrames.event("ready", JSON.stringify({ topics: this.topics }), id))
      this.#readiness = "sent"
    }
    this.#resets = new Map()
    this.#pending = undefined
    return frames
  }

  #id(): string {
    return LivePosition.encode(
      new Map(
        this.topics.flatMap((topic) => {
          const number = this.#position.get(topic)
          return number === undefined ? [] : [[topic, number] as const]
        })
      )
    )
  }
}

const resetFrame = (resets: ReadonlyMap<Topic, ResetReason>, id: string): string => {
  const isUnknown = [...resets.values()].includes("unknown_position")
  const data = {
    topics: [...resets.keys()],
    message: isUnknown
      ? "The id of the last event is no position of this feed. The stream goes on from now: read again what you show."
      : "What happened after the last event is no longer kept. The stream goes on from now: read again what you show."
  }
  return SseFrames.event("reset", JSON.stringify(data), id)
}

import { Effect } from "effect"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import * as SeededRandom from "./SeededRandom.ts"

/**
 * What is told of one task: first that it is queued, then this and that, now and then that it failed, which is not the
 * end of it, and last that it completed.
 */
export interface Story {
  readonly task: string
  readonly statuses: ReadonlyArray<string>
  /** Characters of an event's message. */
  readonly size: number
}

export const of = (task: string, random: SeededRandom.Random): Story => ({
  task,
  statuses: [
    "queued",
    ...Array.from({ length: SeededRandom.integer(random, 40) + 15 }, () => (random() < 0.06 ? "failed" : "processing")),
    "completed"
  ],
  // more than the buffers on the way to a client that reads nothing
  size: random() < 0.03 ? 150_000 : SeededRandom.integer(random, 1_500)
})

/** By the id of an event one sees which, and whether it ends its task for now. */
export const idOf = ({ statuses }: Story, index: number): string => `${index}-${statuses[index]}`

export const isTerminal = (eventId: string): boolean => /-(failed|completed)$/.test(eventId)

export const isLast = (eventId: string): boolean => eventId.endsWith("-completed")

export const messageOf = ({ size, task }: Story, eventId: string): string => `${task} ${eventId} `.padEnd(size, ".")

export interface Told {
  readonly id: string
  isConfirmed: boolean
}

/** Of those in doubt, how many are not said again. */
const givenUp = 0.3

/**
 * Publishes the events of a task one after the other, each until it is confirmed, as somebody would who means it. Some
 * whose outcome is not known are left at that. `told` says all along what was published; who hurries makes no pauses.
 */
export const tell = Effect.fnUntraced(function* (
  story: Story,
  told: Array<Told>,
  random: SeededRandom.Random,
  hurries: () => boolean
) {
  const { publishStatus } = yield* BrokerClient
  const last = story.statuses.length - 1
  const isBurst = random() < 0.3
  for (const [index, status] of story.statuses.entries()) {
    const event: Told = { id: idOf(story, index), isConfirmed: false }
    const publish = publishStatus({
      task_id: story.task,
      status,
      event_id: event.id,
      message: messageOf(story, event.id)
    })
    told.push(event)
    for (;;) {
      const outcome = yield* Effect.result(publish)
      if (outcome._tag === "Success") {
        event.isConfirmed = true
        break
      }
      if (outcome.failure._tag === "PublishUnknown" && index < last && random() < givenUp) {
        // what was on its way arrives before the next one does, or never
        yield* Effect.sleep("1 second")
        break
      }
      yield* Effect.sleep("50 millis")
    }
    if (hurries()) continue
    if (status === "failed") yield* Effect.sleep(SeededRandom.between(random, 0, 800))
    else if (!isBurst) yield* Effect.sleep(SeededRandom.between(random, 0, 80))
  }
})

import { assert, it } from "@effect/vitest"
import { Effect, Exit, Stream } from "effect"
import * as SubscriberQueue from "../../src/services/SubscriberQueue.ts"

it.effect("fails a follower that fell too far behind, after what it can still read in order", () =>
  Effect.gen(function* () {
    const channels = SubscriberQueue.fanout(() => "lagging")
    const slow = yield* channels.subscribe("flood")
    const read: Array<string> = []
    for (let n = 0; n < 10_000; n++) channels.publish("flood", String(n))
    const exit = yield* Effect.exit(
      Stream.runForEach(slow.messages, (message) => Effect.sync(() => read.push(message)))
    )
    assert.deepStrictEqual(exit, Exit.fail("lagging"))
    assert.deepStrictEqual(
      read,
      read.map((_, n) => String(n))
    )
    assert.isBelow(read.length, 10_000)
  })
)

it.effect("forgets a channel with its last follower", () =>
  Effect.gen(function* () {
    const channels = SubscriberQueue.fanout(() => "lagging")
    yield* Effect.scoped(
      Effect.andThen(
        channels.subscribe("brief"),
        Effect.sync(() => channels.publish("brief", "now"))
      )
    )
    assert.strictEqual(channels.publish("brief", "later"), 0)
  })
)

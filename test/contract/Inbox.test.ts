import { assert, it } from "@effect/vitest"
import { Effect, Exit, Stream } from "effect"
import * as Inbox from "../../src/services/Inbox.ts"

it.effect("fails a follower that fell too far behind, after what it can still read in order", () =>
  Effect.gen(function* () {
    const channels = Inbox.fanout(() => "lagging")
    const slow = yield* channels.follow("flood")
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
    const channels = Inbox.fanout(() => "lagging")
    yield* Effect.scoped(
      Effect.andThen(
        channels.follow("brief"),
        Effect.sync(() => channels.publish("brief", "now"))
      )
    )
    assert.strictEqual(channels.publish("brief", "later"), 0)
  })
)

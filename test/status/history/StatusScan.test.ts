import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import { ContractAliasConfig } from "../../../src/messaging/topology/Aliases.ts"
import { declarations } from "../../../src/messaging/topology/Topology.ts"
import { Broker, BrokerError } from "../../../src/services/Broker.ts"
import * as StatusScan from "../../../src/status/history/StatusScan.ts"
import { shared } from "../../messaging/SampleTopologies.ts"

const shown = { aliases: new ContractAliasConfig(), sanitizeMetaKeys: undefined }
const bounds = { seconds: 10, matches: 100, messages: 100, bytes: 1_000_000 }

const found = (change: Partial<Broker["Service"]> = {}) =>
  Effect.gen(function* () {
    const broker = yield* Broker
    const topology = shared()
    yield* broker.declare(declarations(topology))
    for (const text of [`{"task_id":"t","status":"one"}`, `{"task_id":"t","status":"two"}`]) {
      const content = new TextEncoder().encode(text)
      const { exchange } = topology.status
      yield* broker.publish({ purpose: "statuses", exchange, routingKey: "t", content, properties: {} })
    }
    const scanning = yield* Effect.forkChild(
      StatusScan.scan(Broker.of({ ...broker, ...change }), topology.status, shown, {
        startOffset: "first",
        bounds
      }),
      { startImmediately: true }
    )
    // what it asks first is answered by then, which takes no time on the test's clock
    yield* broker.inspect(topology.status.queue)
    yield* TestClock.adjust("12 seconds")
    const { events, nextOffset, truncated } = yield* Fiber.join(scanning)
    return { statuses: events.map((event) => JSON.parse(event).status), truncated, nextOffset }
  }).pipe(Effect.provide(BrokerMemory.layer()))

describe("a scan of the status stream", () => {
  it.effect("ends where the broker has nothing more", () =>
    Effect.map(found(), (seen) =>
      assert.deepStrictEqual(seen, { statuses: ["one", "two"], truncated: false, nextOffset: undefined })
    )
  )

  it.effect("takes the silence of a broker that does not answer for no end", () =>
    Effect.gen(function* () {
      const gone = new BrokerError({ operation: "connect", reason: "timeout", message: "no answer" })
      assert.isTrue((yield* found({ ping: Effect.fail(gone) })).truncated)
      assert.isTrue((yield* found({ ping: Effect.never })).truncated)
    })
  )
})

import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { Broker } from "../../src/services/Broker.ts"
import * as StatusHub from "../../src/status/hub/StatusHub.ts"
import * as RedisStatusStore from "../../src/status/store/RedisStatusStore.ts"
import { StatusStore } from "../../src/status/store/StatusStore.ts"
import { eventually } from "../Eventually.ts"
import { logged } from "../messaging/Logged.ts"
import * as RabbitmqProcess from "../RabbitmqProcess.ts"
import { event } from "../status/Events.ts"
import * as FaultyStatuses from "./FaultyStatuses.ts"

describe.skipIf(!RabbitmqProcess.available)("a status stream that RabbitMQ lost track of", { timeout: 300_000 }, () => {
  it.live("is said to be down, takes nothing, and is read on from its first event when its owner has mended it", () =>
    Effect.gen(function* () {
      const server = yield* RabbitmqProcess.make()
      const log = logged()
      const doors = Layer.provideMerge(
        Layer.merge(BrokerClient.layer({ topology }), RedisStatusStore.layer(FaultyStatuses.kept)),
        Layer.merge(
          BrokerAmqp.layer({ url: server.url, name: "svc-test-lost-stream" }),
          RedisMemory.layer({ prefix: FaultyStatuses.prefix })
        )
      )
      yield* Effect.gen(function* () {
        const { publishStatus } = yield* BrokerClient
        const { examine, inspect } = yield* Broker
        yield* Effect.forEach(["e0", "e1", "e2"], (id) => publishStatus(event("t", id)))
        yield* RabbitmqProcess.writtenDown
        yield* server.kill
        yield* server.forgetStreams
        yield* server.start
        const hub = yield* StatusHub.make({ idleRetrySeconds: 0.2 })
        yield* Effect.forkScoped(hub.run)
        const told = /svc-status-hub: queue status\.queue cannot be consumed.*home node .*README\.md describes/
        yield* eventually(Effect.sync(log.lines), (lines) => lines.some((line) => told.test(line)))
        // for good, and not as a stream is until its leader is there
        yield* Effect.sleep("3 seconds")
        assert.deepInclude(yield* Effect.flip(inspect(stream)), { operation: "inspect", reason: "down" })
        assert.deepInclude(yield* Effect.flip(examine({ queue: { name: stream } })), {
          operation: "examine",
          reason: "down"
        })
        assert.deepInclude(yield* Effect.flip(publishStatus(event("t", "meanwhile"))), { _tag: "Unroutable" })

        yield* server.control("eval", mending)
        // the command returns before the stream has its leader, and until then nothing takes what is published
        yield* publishStatus(event("t", "e3")).pipe(
          Effect.retry({ schedule: Schedule.spaced("100 millis"), times: 200 })
        )
        const { history } = yield* StatusStore
        const { events } = yield* eventually(history("t"), ({ newest }) => newest >= 4)
        assert.deepStrictEqual(
          events.map(({ eventId }) => eventId),
          ["e0", "e1", "e2", "e3"]
        )
        yield* hub.stop
      }).pipe(Effect.scoped, Effect.provide(doors), Effect.provide(log.layer))
    }).pipe(Effect.scoped)
  )
})

const topology = FaultyStatuses.topology(true)

const stream = topology.status.queue

/** The command of `src/messaging/README.md`. */
const mending = `[Q] = mnesia:dirty_read(rabbit_durable_queue, rabbit_misc:r(<<"/">>, queue, <<"${stream}">>)), rabbit_stream_coordinator:new_stream(Q, node()).`

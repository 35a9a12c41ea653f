import { assert, describe, it } from "@effect/vitest"
import { type Channel, type ChannelModel, connect } from "amqplib"
import { Effect } from "effect"
import { inject } from "vitest"
import * as BrokerCapabilities from "../../../src/messaging/topology/BrokerCapabilities.ts"
import * as QueueArguments from "../../../src/messaging/topology/QueueArguments.ts"

const url = inject("rabbitmq")
const types: ReadonlyArray<QueueArguments.QueueType> = ["classic", "quorum", "stream"]

/** Values on both sides of every border. Wrong `x-max-age` and `x-queue-master-locator` cost the whole connection. */
const cases: ReadonlyArray<
  readonly [argument: string, values: ReadonlyArray<string | number | boolean>, beside?: object]
> = [
  ["x-message-ttl", [-1, 0, 1, 4_294_967_295, "5", true, 1.5]],
  ["x-expires", [-1, 0, 1000, 4_294_967_295]],
  ["x-max-length", [-1, 0, "5"]],
  ["x-max-length-bytes", [-1, 0, "5"]],
  ["x-max-priority", [-1, 1, 255, 256, "5"]],
  ["x-overflow", ["drop-head", "reject-publish", "reject-publish-dlx", "bogus"]],
  ["x-single-active-consumer", [true, false, "yes", 1]],
  ["x-dead-letter-exchange", ["", "amq.fanout", 5]],
  ["x-dead-letter-routing-key", ["key"]],
  ["x-dead-letter-routing-key", ["key", 5], { "x-dead-letter-exchange": "" }],
  ["x-dead-letter-strategy", ["at-most-once", "bogus"]],
  ["x-delivery-limit", [0, 5]],
  ["x-queue-leader-locator", ["client-local", "balanced", "random", "least-leaders", "bogus"]],
  ["x-queue-master-locator", ["min-masters", "client-local", "random"]],
  ["x-queue-mode", ["lazy", "default", "bogus"]],
  ["x-queue-version", [1, 2, 3]],
  ["x-quorum-initial-group-size", [-1, 0, 1]],
  ["x-initial-cluster-size", [-1, 0, 1]],
  ["x-max-age", ["7D", "1h", "5Q", "0D", 5]],
  ["x-stream-max-segment-size-bytes", [-1, 0, 3_000_000_000, 3_000_000_001]],
  ["x-max-in-memory-length", [0]],
  ["x-max-in-memory-bytes", [0]],
  ["x-consumer-timeout", [600_000]],
  ["x-stream-filter-size-bytes", [16]],
  ["x-no-such-argument", [1]]
]

const declarations = cases.flatMap(([argument, values, beside]) =>
  types.flatMap((type) =>
    values.map((value) => ({ type, argument, declared: { "x-queue-type": type, ...beside, [argument]: value } }))
  )
)

describe("queue arguments", () => {
  it.each([
    ["classic", "x-queue-leader-locator", "balanced", 313, ["refused"]],
    ["classic", "x-queue-leader-locator", "balanced", 400, []],
    ["classic", "x-queue-mode", "lazy", 310, []],
    ["classic", "x-queue-mode", "lazy", 312, ["inert"]],
    ["classic", "x-queue-mode", "lazy", 403, ["refused"]],
    ["classic", "x-queue-master-locator", "random", 402, []],
    ["classic", "x-queue-master-locator", "random", 403, ["refused"]],
    ["classic", "x-queue-version", 2, 403, []],
    ["classic", "x-queue-version", 1, 403, ["refused"]],
    ["classic", "x-consumer-timeout", 600_000, 311, ["inert"]],
    ["classic", "x-consumer-timeout", 600_000, 312, []],
    ["classic", "x-consumer-timeout", 600_000, 403, ["inert"]],
    ["quorum", "x-consumer-timeout", 600_000, 403, []],
    ["stream", "x-consumer-timeout", 600_000, 402, ["inert"]],
    ["stream", "x-stream-filter-size-bytes", 16, 310, ["inert"]],
    ["stream", "x-stream-filter-size-bytes", 16, 313, []],
    ["quorum", "x-delayed-retry-type", "all", 402, ["inert"]],
    ["quorum", "x-delayed-retry-type", "all", 403, []],
    ["quorum", "x-max-priority", 5, 403, ["refused"]],
    ["classic", "constructor", 1, 310, ["inert"]]
  ] as const)("of %s queues: %s = %j on release %d is %j", (type, argument, value, release, standings) => {
    assert.deepStrictEqual(
      QueueArguments.examineFor({ "x-queue-type": type, [argument]: value }, release).map(({ standing }) => standing),
      [...standings]
    )
  })

  it("are refused at once where no release takes them, and later where one does", () => {
    const examined = (declared: Record<string, string | number>) =>
      QueueArguments.examineForAllReleases(declared).map(({ argument, standing }) => `${argument} ${standing}`)
    assert.deepStrictEqual(examined({ "x-queue-type": "bogus" }), ["x-queue-type refused"])
    assert.deepStrictEqual(examined({ "x-delivery-limit": 3 }), ["x-delivery-limit refused"])
    assert.deepStrictEqual(examined({ "x-queue-leader-locator": "balanced" }), [])
    assert.deepStrictEqual(examined({ "x-queue-mode": "lazy" }), [])
    assert.deepStrictEqual(examined({ "x-typo": 3 }), ["x-typo inert"])
    assert.deepStrictEqual(examined({ "x-consumer-timeout": "abc" }), ["x-consumer-timeout refused"])
  })
})

describe.skipIf(url === null)("RabbitMQ itself", () => {
  it.effect("refuses exactly the declarations that the table of its release refuses", (context) =>
    Effect.gen(function* () {
      const connection = yield* Effect.acquireRelease(
        Effect.promise(() => connect(url ?? "")),
        (connection) => Effect.promise(() => connection.close())
      )
      const { serverProperties } = connection.connection
      const capabilities = BrokerCapabilities.of(String(serverProperties.version))
      // the others were never measured
      if (capabilities?.release !== 310) return context.skip("the table of 3.10 is the measured one")
      const wrong: Array<string> = []
      for (const [index, { declared }] of declarations.entries()) {
        const expected = QueueArguments.examineFor(declared, 310).some(({ standing }) => standing === "refused")
        const refused = yield* Effect.promise(() => isRefused(connection, `svc-test-arguments-${index}`, declared))
        if (refused !== expected)
          wrong.push(`${JSON.stringify(declared)}: the broker ${refused ? "refuses" : "takes"} it`)
      }
      assert.deepStrictEqual(wrong, [])
    })
  )
})

/** Leaves nothing behind: what is taken is deleted on the same channel. */
async function isRefused(connection: ChannelModel, prefix: string, declared: object): Promise<boolean> {
  const channel: Channel = await connection.createChannel()
  channel.on("error", () => {})
  const queue = `${prefix}-${process.pid}`
  try {
    await channel.assertQueue(queue, { durable: true, arguments: declared })
  } catch {
    return true
  }
  await channel.deleteQueue(queue)
  await channel.close()
  return false
}

import { Effect, Schema } from "effect"
import { Broker } from "../../src/services/Broker.ts"

const Said = Schema.fromJsonString(
  Schema.Struct({ task_id: Schema.String, status: Schema.String, result: Schema.optionalKey(Schema.Unknown) })
)

/** What is said on a status stream, from its beginning: it grows for as long as the scope is open. */
export const listening = Effect.fnUntraced(function* (queue: string) {
  const { consume } = yield* Broker
  const said: Array<typeof Said.Type> = []
  yield* consume({
    queue,
    prefetch: 100,
    arguments: { "x-stream-offset": "first" },
    onDelivery: ({ content, settle }) => {
      said.push(Schema.decodeUnknownSync(Said)(Buffer.from(content).toString()))
      settle("ack")
    }
  })
  return said
})

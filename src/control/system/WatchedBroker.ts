import { Context, DateTime, Effect, Layer, Option, Ref, Stream } from "effect"
import type { DependencyState } from "../../process/Readiness.ts"
import { Broker } from "../../services/Broker.ts"

/** Returns the state of the connection to the broker. A process without tasks has none. */
export const WatchedBroker = Context.Reference<Effect.Effect<Option.Option<DependencyState>>>(
  "svc/control/WatchedBroker",
  { defaultValue: () => Effect.succeedNone }
)

/** Follows the connection of this process to the broker. */
export const layer = Layer.effect(
  WatchedBroker,
  Effect.gen(function* () {
    const { connection } = yield* Broker
    const current = yield* Ref.make(Option.none<DependencyState>())
    const note = Effect.fnUntraced(function* (up: boolean) {
      const since = yield* DateTime.now
      yield* Ref.update(current, (known) =>
        Option.exists(known, (state) => state.up === up) ? known : Option.some({ name: "broker", up, since })
      )
    })
    yield* Effect.forkScoped(
      Stream.runForEach(connection, ({ _tag }) => note(_tag === "Connected" || _tag === "Blocked"))
    )
    return Ref.get(current)
  })
)

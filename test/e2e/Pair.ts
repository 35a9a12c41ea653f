import { Context, Effect, Layer } from "effect"
import * as RunningGateway from "../RunningGateway.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import * as Deployment from "./Deployment.ts"

/** Two gateway processes of one deployment before one upstream; operators speak to the first. */
export class Pair extends Context.Service<
  Pair,
  {
    readonly deployment: Deployment.Deployment
    readonly first: RunningGateway.RunningGateway
    readonly second: RunningGateway.RunningGateway
    readonly upstream: SimulatorServer.SimulatorServer
    readonly operate: (method: string, path: string, body?: unknown) => Effect.Effect<unknown>
    readonly createKey: (
      body?: Readonly<Record<string, unknown>>
    ) => Effect.Effect<{ readonly raw: string; readonly id: string }>
  }
>()("test/e2e/Pair") {
  static readonly layer = Layer.effect(
    Pair,
    Effect.gen(function* () {
      const upstream = yield* SimulatorServer.serve()
      const deployment = yield* Deployment.make({
        environment: { UPSTREAM_BASE_URL: upstream.origin, UPSTREAM_SERVICE_KEY: "of-the-start", LOG_LEVEL: "info" }
      })
      const [first, second] = yield* Effect.all([deployment.start(), deployment.start({ role: "gateway" })], {
        concurrency: 2
      })
      return Pair.of({
        deployment,
        first,
        second,
        upstream,
        operate: (method, path, body) => Effect.promise(() => first.operate(method, path, body)),
        createKey: (body) => Effect.promise(() => RunningGateway.createKey(first, body))
      })
    })
  )
}

import { Effect, Layer } from "effect"
import * as UpstreamHttp from "../../layers/UpstreamHttp.ts"
import * as UpstreamSimulator from "../../layers/UpstreamSimulator.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import { settings, suite, Target } from "./Upstream.ts"

const served = Layer.effect(
  Target,
  Effect.map(SimulatorServer.serve({ ...settings, now: () => 0 }), ({ origin }) => Target.of({ origin }))
)

suite("http", Layer.mergeAll(UpstreamHttp.layer, served))

suite(
  "simulator",
  Layer.mergeAll(UpstreamSimulator.layerWith(settings), Layer.succeed(Target, { origin: "http://simulator" }))
)

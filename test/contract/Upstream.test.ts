import { Layer } from "effect"
import { afterAll, describe, it } from "vitest"
import { Contract, UpstreamContract } from "../../layers/testing/index.ts"
import * as UpstreamHttp from "../../layers/UpstreamHttp.ts"
import * as UpstreamSimulator from "../../layers/UpstreamSimulator.ts"

const { layerTarget, settings, suite, Target } = UpstreamContract
const runner = { afterAll, describe, it }

Contract.register(suite, { name: "http", layer: Layer.merge(UpstreamHttp.layer, layerTarget) }, runner)

const simulated = Layer.succeed(Target, { origin: "http://simulator" })

Contract.register(
  suite,
  { name: "simulator", layer: Layer.merge(UpstreamSimulator.layerWith(settings), simulated) },
  runner
)

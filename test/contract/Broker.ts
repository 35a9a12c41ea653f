import { layer as describeWith } from "@effect/vitest"
import { Layer } from "effect"
import type { Broker } from "../../src/services/Broker.ts"
import * as Temporary from "../TemporaryNames.ts"
import * as Channels from "./broker/Channels.ts"
import type { ConnectionFaults } from "./broker/ConnectionFaults.ts"
import * as Consuming from "./broker/Consuming.ts"
import * as DeadLettering from "./broker/DeadLettering.ts"
import * as Declaring from "./broker/Declaring.ts"
import * as Limits from "./broker/Limits.ts"
import * as Publishing from "./broker/Publishing.ts"
import * as Recovery from "./broker/Recovery.ts"
import * as Streams from "./broker/Streams.ts"

/** What every `Broker` promises, on the real clock. */
export const suite = <E>(name: string, layer: Layer.Layer<Broker | ConnectionFaults, E>) =>
  describeWith(Layer.provideMerge(Temporary.layer, layer), { excludeTestServices: true })(`Broker: ${name}`, (it) => {
    Declaring.laws(it)
    Publishing.laws(it)
    Consuming.laws(it)
    DeadLettering.laws(it)
    Limits.laws(it)
    Streams.laws(it)
    Channels.laws(it)
    Recovery.laws(it)
  })

import { Effect, type Scope } from "effect"
import type { Broker } from "../../../../src/services/Broker.ts"
import { type Law, law } from "../law/Law.ts"
import type { ConnectionFaults } from "./ConnectionFaults.ts"
import * as Temporary from "./TemporaryNames.ts"

export type BrokerLaw = Law<Broker | ConnectionFaults>

/** Makes a law whose queues and exchanges have names of their own. */
export const brokerLaw = <E>(
  name: string,
  effect: Effect.Effect<unknown, E, Broker | ConnectionFaults | Temporary.TemporaryNames | Scope.Scope>
): BrokerLaw => law(name, Effect.provideServiceEffect(Effect.scoped(effect), Temporary.TemporaryNames, Temporary.make))

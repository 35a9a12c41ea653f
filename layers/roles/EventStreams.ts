import { Option } from "effect"
import * as FairShare from "../../src/services/FairShare.ts"
import type { Settings } from "../Environment.ts"
import * as Listeners from "../Listeners.ts"

/** Adds the limit of event streams to the default limits, so that other requests still get connections. */
export const connectionLimits = ({ most, perAddress }: Settings["eventStreams"]) => ({
  total: most + Listeners.defaultConnectionLimits.total,
  perAddress: Option.getOrElse(perAddress, () => FairShare.maximum(most)) + Listeners.defaultConnectionLimits.perAddress
})

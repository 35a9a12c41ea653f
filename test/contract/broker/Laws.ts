import type { Vitest } from "@effect/vitest"
import type { Broker } from "../../../src/services/Broker.ts"
import type { TemporaryNames } from "../../TemporaryNames.ts"
import type { ConnectionFaults } from "./ConnectionFaults.ts"

/** A part of what every `Broker` promises, to be told to a test runner. */
export type Laws = (it: Vitest.MethodsNonLive<Broker | ConnectionFaults | TemporaryNames>) => void

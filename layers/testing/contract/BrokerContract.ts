import type { Broker } from "../../../src/services/Broker.ts"
import * as Channels from "./broker/Channels.ts"
import type { ConnectionFaults } from "./broker/ConnectionFaults.ts"
import * as Consuming from "./broker/Consuming.ts"
import * as DeadLettering from "./broker/DeadLettering.ts"
import * as Declaring from "./broker/Declaring.ts"
import * as Limits from "./broker/Limits.ts"
import * as Publishing from "./broker/Publishing.ts"
import * as Recovery from "./broker/Recovery.ts"
import * as Streams from "./broker/Streams.ts"
import type { Suite } from "./law/Law.ts"

export { ConnectionFaults } from "./broker/ConnectionFaults.ts"

/**
 * The laws of `Broker`: RabbitMQ's behaviour, as far as the library relies on it. Beside the variant, they need a way to
 * cut its connection.
 */
export const suite: Suite<Broker | ConnectionFaults> = {
  door: "Broker",
  laws: [
    ...Declaring.laws,
    ...Publishing.laws,
    ...Consuming.laws,
    ...DeadLettering.laws,
    ...Limits.laws,
    ...Streams.laws,
    ...Channels.laws,
    ...Recovery.laws
  ]
}

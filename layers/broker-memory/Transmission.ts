import type { Outcome, Publication } from "../../src/services/Broker.ts"
import type { BrokerState, RoutingResult } from "./BrokerState.ts"
import type { ClientConnection } from "./ClientConnection.ts"
import { ChannelException } from "./queues/ChannelException.ts"
import { messageOf } from "./queues/Message.ts"

interface Transmission {
  readonly broker: BrokerState
  readonly connection: ClientConnection
  readonly publication: Omit<Publication, "purpose">
  readonly onOutcome: (outcome: Outcome) => void
  /** Called if the broker refuses the publish. RabbitMQ closes the channel in this case. */
  readonly onRefused: (refusal: ChannelException) => void
}

const outcomeOf = (routed: RoutingResult, { exchange, routingKey }: Omit<Publication, "purpose">): Outcome => {
  switch (routed) {
    case "taken":
      return { _tag: "Confirmed" }
    case "refused":
      return {
        _tag: "Refused",
        reason: "nacked",
        detail: "The broker could not store the message: a queue is full or failing"
      }
    case "unroutable":
      return {
        _tag: "Returned",
        detail: `NO_ROUTE: no queue of exchange "${exchange}" takes the routing key "${routingKey}"`
      }
  }
}

const refusedReason = ({ reason }: ChannelException): "no_exchange" | "denied" | "invalid" => {
  if (reason === "not_found") return "no_exchange"
  return reason === "denied" ? "denied" : "invalid"
}

export const transmit = ({ onOutcome, connection, broker, publication, onRefused }: Transmission): void => {
  const respond = (outcome: Outcome) => connection.send(() => onOutcome(outcome))
  connection.publish(() => {
    try {
      const routed = broker.atomically(() => broker.publish(messageOf(publication)))
      respond(outcomeOf(routed, publication))
    } catch (error) {
      if (!(error instanceof ChannelException)) throw error
      connection.send(() => {
        onOutcome({ _tag: "Refused", reason: refusedReason(error), detail: error.message })
        onRefused(error)
      })
    }
  })
}

import type { Outcome, Publication } from "../../src/services/Broker.ts"
import type { Node, Routed } from "./Node.ts"
import { make } from "./queues/Message.ts"
import { Refusal } from "./queues/Refusal.ts"
import type { Line } from "./Wire.ts"

interface Transmission {
  readonly node: Node
  readonly line: Line
  readonly publication: Omit<Publication, "purpose">
  readonly answered: (outcome: Outcome) => void
  /** It costs the channel. */
  readonly refused: (refusal: Refusal) => void
}

const outcomeOf = (routed: Routed, { exchange, routingKey }: Omit<Publication, "purpose">): Outcome => {
  switch (routed) {
    case "taken":
      return { _tag: "Confirmed" }
    case "refused":
      return {
        _tag: "Refused",
        reason: "nacked",
        detail: "The broker could not store it: a full queue, or a failing one"
      }
    case "unroutable":
      return {
        _tag: "Returned",
        detail: `NO_ROUTE: no queue of exchange "${exchange}" takes the routing key "${routingKey}"`
      }
  }
}

const refusalOf = ({ reason }: Refusal): "no_exchange" | "denied" | "invalid" => {
  if (reason === "not_found") return "no_exchange"
  return reason === "denied" ? "denied" : "invalid"
}

/** One publish, from the client to the broker, and the answer on its way back. */
export const transmit = ({ answered, line, node, publication, refused }: Transmission): void => {
  const answer = (outcome: Outcome) => line.send(() => answered(outcome))
  line.publish(() => {
    try {
      const routed = node.step(() => node.publish(make(publication)))
      answer(outcomeOf(routed, publication))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      line.send(() => {
        answered({ _tag: "Refused", reason: refusalOf(error), detail: error.message })
        refused(error)
      })
    }
  })
}

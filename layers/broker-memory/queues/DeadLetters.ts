import type { Field, Fields } from "../../../src/services/Broker.ts"
import { typeOf } from "./Fields.ts"
import { extraRoutingKeys, type Message } from "./Message.ts"

/** RabbitMQ writes these reasons to the header `x-death`. */
export type DeathReason = "expired" | "rejected" | "maxlen" | "delivery_limit"

interface Death {
  readonly cause: DeathReason
  readonly queue: string
  readonly exchange: string
  /** `undefined` if the message keeps its own routing key. */
  readonly routingKey: string | undefined
  readonly now: number
}

const isTable = (field: Field): field is Fields => typeOf(field) === "table"

const deathsOf = (headers: Fields | undefined): ReadonlyArray<Fields> | undefined => {
  const deaths = headers?.["x-death"]
  return Array.isArray(deaths) ? deaths.filter(isTable) : undefined
}

/** The newest entry comes first. If an entry has the same queue and reason, only its count increases. */
const withDeath = (previous: ReadonlyArray<Fields>, newDeath: Fields): ReadonlyArray<Fields> => {
  const repeated = previous.find(
    (death) => death["queue"] === newDeath["queue"] && death["reason"] === newDeath["reason"]
  )
  if (repeated === undefined) return [{ count: 1, ...newDeath }, ...previous]
  const count = repeated["count"]
  return [
    { ...repeated, count: typeof count === "number" ? count + 1 : 1 },
    ...previous.filter((death) => death !== repeated)
  ]
}

export const deadLetterOf = (message: Message, death: Death): Message => {
  const { expiration, headers, ...properties } = message.properties
  const [publishedKey] = message.routingKeys
  const previous = deathsOf(headers)
  const newDeath: Fields = {
    reason: death.cause,
    queue: death.queue,
    time: new Date(Math.floor(death.now / 1_000) * 1_000),
    exchange: message.exchange,
    "routing-keys": [publishedKey, ...extraRoutingKeys(headers, "CC")],
    ...(expiration === undefined ? {} : { "original-expiration": String(expiration) })
  }
  const { CC, ...others } = headers ?? {}
  const isFirst = headers?.["x-death"] === undefined
  return {
    exchange: death.exchange,
    routingKeys: death.routingKey === undefined ? message.routingKeys : [death.routingKey],
    content: message.content,
    properties: {
      ...properties,
      headers: {
        ...others,
        ...(CC !== undefined && death.routingKey === undefined ? { CC } : {}),
        ...(isFirst
          ? {
              "x-first-death-reason": death.cause,
              "x-first-death-queue": death.queue,
              "x-first-death-exchange": message.exchange
            }
          : {}),
        "x-death": withDeath(previous ?? [], newDeath)
      }
    }
  }
}

/** Returns true if the message would circulate through `queue` forever, because no consumer rejects it. */
export const isCycle = ({ properties }: Message, queue: string): boolean => {
  const deaths = deathsOf(properties.headers) ?? []
  const last = deaths.findIndex((death) => death["queue"] === queue)
  return last !== -1 && deaths.slice(0, last + 1).every((death) => death["reason"] !== "rejected")
}

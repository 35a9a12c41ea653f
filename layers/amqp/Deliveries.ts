import type { Message } from "amqplib/callback_api"
import { BrokerError, type ConsumeOptions, type Delivery, type Field, type Fields } from "../../src/services/Broker.ts"
import * as Messages from "./Messages.ts"
import type { Settlements } from "./Settlements.ts"

const requeueDelayMs = 1_000

export interface DeliverySource {
  readonly queue: string
  readonly isStream: boolean
  readonly epoch: number
  readonly settlements: Settlements
}

/** Must be called for every delivery of a channel, in the order of the delivery tags. */
export const of = (message: Message, { epoch, queue, settlements, isStream }: DeliverySource): Delivery => {
  const { deliveryTag, exchange, redelivered, routingKey } = message.fields
  const properties = Messages.propertiesOf(message.properties)
  const offset = properties.headers?.[streamOffset]
  settlements.track(typeof offset === "number" ? offset : undefined)
  return {
    queue,
    exchange,
    routingKey,
    content: message.content,
    properties,
    redelivered,
    deliveryTag,
    epoch,
    // A stream delivery is always acknowledged. RabbitMQ would close the connection on a reject or requeue.
    settle: (how) => settlements.settle(deliveryTag, isStream ? "ack" : how)
  }
}

/** If the callback throws, the message is requeued after a delay. amqplib itself would close the connection. */
export const deliver = (
  delivery: Delivery,
  receiver: ConsumeOptions["onDelivery"],
  report: (defect: unknown) => void
): void => {
  try {
    receiver(delivery)
  } catch (defect) {
    report(defect)
    setTimeout(() => delivery.settle("requeue"), requeueDelayMs).unref()
  }
}

const streamOffset = "x-stream-offset"

/** Returns an error for options that would make RabbitMQ close the connection. */
export const problemOf = (options: Pick<ConsumeOptions, "arguments"> & { readonly prefetch: number }) => {
  const { prefetch } = options
  if (!Number.isInteger(prefetch) || prefetch < 1 || prefetch > 65_535)
    return refusal(`prefetch is ${prefetch}: it must be from 1 to 65535`)
  const offset = options.arguments?.[streamOffset]
  if (offset !== undefined && !isOffset(offset))
    return refusal(
      `x-stream-offset is ${String(offset)}: it must be first, last, next, an offset, a time, or a time span such as 1h`
    )
  return undefined
}

const refusal = (message: string) => new BrokerError({ operation: "consume", reason: "refused", message })

const isOffset = (offset: Field): boolean => {
  if (typeof offset === "string") return /^(first|last|next|\d+[YMDhms])$/.test(offset)
  if (typeof offset === "number") return Number.isSafeInteger(offset) && offset >= 0
  if (typeof offset === "bigint") return offset >= 0n && offset < 2n ** 63n
  return offset instanceof Date && offset.getTime() >= 0
}

export const withResumeOffset = (given: Fields, resumeAt: number | undefined): Fields =>
  resumeAt === undefined ? given : { ...given, [streamOffset]: resumeAt }

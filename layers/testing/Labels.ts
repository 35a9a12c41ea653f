import type { Publication, Settlement } from "../../src/services/Broker.ts"

type Message = Pick<Publication, "content" | "properties">

/** Returns the name of a message for people, such as `task o1`. */
export const messageName = (message: Message): string => {
  const id = textOf(bodyOf(message), "task_id") ?? textOf(bodyOf(message), "documentId")
  const known = id ?? message.properties.correlationId ?? message.properties.messageId
  return known === undefined ? "a message without an id" : `task ${known}`
}

export const deliveryLabel = (message: Message): string => `the delivery of ${messageName(message)}`

export const publishLabel = (publication: Publication): string => {
  const name = messageName(publication)
  if (publication.purpose === "statuses") {
    return `the publish of the status “${textOf(bodyOf(publication), "status") ?? ""}” of ${name}`
  }
  return `the publish of ${name} to ${publication.exchange === "" ? "the queue" : `${publication.exchange} as`} ${publication.routingKey}`
}

export const settlementLabel = (message: Message, how: Settlement): string => {
  const name = messageName(message)
  switch (how) {
    case "ack":
      return `the acknowledgement of ${name}`
    case "reject":
      return `the rejection of ${name}`
    case "requeue":
      return `the return of ${name} to its queue`
  }
}

/** Returns the parsed JSON body of a message, or `undefined` if the body is not JSON. */
export const bodyOf = ({ content }: Pick<Message, "content">): unknown => {
  try {
    return JSON.parse(Buffer.from(content).toString())
  } catch {
    return undefined
  }
}

export const textOf = (body: unknown, member: string): string | undefined => {
  if (typeof body !== "object" || body === null) return undefined
  const value: unknown = Reflect.get(body, member)
  return typeof value === "string" ? value : undefined
}

import { messageOf, replyCodeOf } from "./AmqpFailure.ts"
import type { PendingPublish } from "./PendingPublish.ts"

/** Returns the index of the publish that made the broker close the channel, or -1 if it is unknown. */
export const findOffender = (sent: ReadonlyArray<PendingPublish>, why: Error): number => {
  const words = messageOf(why)
  const size = / message size (\d+) /.exec(words)?.[1]
  return sent.findIndex(({ publication: { content, exchange, properties } }) => {
    if (words.includes(`exchange '${exchange}'`)) return true
    if (size !== undefined) return content.length === Number(size)
    return properties.userId !== undefined && words.includes(`user_id property set to '${properties.userId}'`)
  })
}

export const failsWithOffender = (pending: PendingPublish, offender: PendingPublish | undefined, why: Error): boolean =>
  messageOf(why).includes("exchange '") && pending.publication.exchange === offender?.publication.exchange

export const refusalOf = (why: Error): "no_exchange" | "denied" | "invalid" => {
  const code = replyCodeOf(why)
  if (code === 404) return "no_exchange"
  return code === 403 ? "denied" : "invalid"
}

import { Effect, Schema } from "effect"
import type { Outcome, Publication } from "../../services/Broker.ts"

const destinationFields = { exchange: Schema.String, routingKey: Schema.String, message: Schema.String }

/** No queue accepted the message, so it is not stored. Publishing it again creates no duplicate. */
export class Unroutable extends Schema.TaggedError<Unroutable>()("Unroutable", destinationFields) {
  readonly mayDuplicate = false
}

/** The message was not stored. `reason` says why. Publishing it again creates no duplicate. */
export class PublishRefused extends Schema.TaggedError<PublishRefused>()("PublishRefused", {
  ...destinationFields,
  reason: Schema.Literals(["nacked", "no_exchange", "denied", "invalid", "blocked", "unreachable", "closed"])
}) {
  readonly mayDuplicate = false
}

/** The message was sent but not confirmed. It may be stored, so publishing it again may create a duplicate. */
export class PublishUnknown extends Schema.TaggedError<PublishUnknown>()("PublishUnknown", {
  ...destinationFields,
  reason: Schema.Literals(["lost", "deadline"])
}) {
  readonly mayDuplicate = true
}

/** The failures of a publish that the broker did not confirm. */
export type UnconfirmedPublish = Unroutable | PublishRefused | PublishUnknown

const isPermanent = (reason: PublishRefused["reason"]): boolean => reason === "invalid"

/** Fails unless the broker has confirmed the message. */
export const requireConfirmed = (
  { exchange, routingKey }: Pick<Publication, "exchange" | "routingKey">,
  outcome: Outcome
): Effect.Effect<void, UnconfirmedPublish> => {
  if (outcome._tag === "Confirmed") return Effect.void
  const where = exchange === "" ? `the queue ${routingKey}` : `exchange ${exchange} (routing key ${routingKey})`
  switch (outcome._tag) {
    case "Returned":
      return Effect.fail(
        new Unroutable({
          exchange,
          routingKey,
          message:
            exchange === ""
              ? `There is no queue ${routingKey}: declare it, or start the worker that declares it.`
              : `No queue is bound to the exchange ${exchange} with the routing key ${routingKey}: start the worker that declares it, or correct the key.`
        })
      )
    case "Refused":
      return Effect.fail(
        new PublishRefused({
          exchange,
          routingKey,
          reason: outcome.reason,
          message: `The publish to ${where} was refused (${outcome.reason}): ${outcome.detail}. The message was not stored. ${isPermanent(outcome.reason) ? "Publishing it again would fail in the same way" : "It can be published again"}.`
        })
      )
    case "Unknown":
      return Effect.fail(
        new PublishUnknown({
          exchange,
          routingKey,
          reason: outcome.reason,
          message: `The broker did not confirm the message to ${where} (${outcome.reason}): ${outcome.detail}. It may be stored, and publishing it again may duplicate it.`
        })
      )
  }
}

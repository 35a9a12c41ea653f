import { Effect } from "effect"
import { BrokerError, type Field, type Fields } from "../../src/services/Broker.ts"
import * as Wire from "./Fields.ts"
import type { Link } from "./Link.ts"

type Operation = BrokerError["operation"]

/**
 * AMQP has no request that tells whether a queue is a stream. So this declares the queue as a stream with an argument
 * that streams ignore. For any other queue the broker reports a mismatch. No queue is created.
 *
 * A missing queue is an error, because it may be declared as a stream before the caller's next request.
 */
export const isStream = (link: Link, operation: Operation, queue: string): Effect.Effect<boolean, BrokerError> =>
  probe(link, operation, queue, { "x-queue-type": "stream", "x-max-priority": 1 })

const probe = (
  link: Link,
  operation: Operation,
  queue: string,
  declared: Fields
): Effect.Effect<boolean, BrokerError> =>
  link
    .withChannel(operation, (channel) =>
      link.ask<unknown>(operation, (answer) =>
        channel.assertQueue(queue, { durable: true, arguments: Wire.toWire(declared) }, answer)
      )
    )
    .pipe(
      Effect.as(true),
      Effect.catch((error) => {
        // `locked` means that the queue is exclusive. Streams cannot be exclusive.
        if (error.reason === "locked" || error.reason === "not_found") return Effect.succeed(false)
        if (error.reason !== "mismatch") return Effect.fail(error)
        if (refusedForStreams.test(error.message))
          return Effect.fail(
            new BrokerError({ operation, reason: "not_found", message: `NOT_FOUND - no queue '${queue}'` })
          )
        const difference = differenceIn(error.message)
        if (difference === undefined) return Effect.succeed(false)
        if (streamOnlyArguments.has(difference.name)) return Effect.succeed(true)
        if (!sharedArguments.has(difference.name) || difference.name in declared) return Effect.succeed(false)
        return probe(link, operation, queue, { ...declared, [difference.name]: difference.value })
      })
    )

const streamOnlyArguments = new Set(["x-max-age", "x-stream-max-segment-size-bytes", "x-initial-cluster-size"])
const sharedArguments = new Set(["x-max-length-bytes", "x-queue-leader-locator"])

/** The broker compares with a queue that exists, and checks the arguments only of a queue that it would create. */
const refusedForStreams = /^PRECONDITION_FAILED - invalid arg 'x-max-priority'/

/** Matches `inequivalent arg 'x-max-length-bytes' for queue 'q' … but current is the value '1' of type 'byte'`. */
const inequivalent = /inequivalent arg '([^']+)' .* current is (?:the value '([^']*)' of type '(\w+)'|.*)$/

const differenceIn = (words: string): { readonly name: string; readonly value: Field } | undefined => {
  const [, name, value, type] = inequivalent.exec(words) ?? []
  if (name === undefined) return undefined
  return { name, value: type === "longstr" ? (value ?? "") : Number(value) }
}

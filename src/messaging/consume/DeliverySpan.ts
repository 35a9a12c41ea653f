import { Clock, Effect, Exit, Tracer } from "effect"
import type { Delivery } from "../../services/Broker.ts"
import * as TraceContext from "../envelope/TraceContext.ts"
import * as MessageAttributes from "../observe/MessageAttributes.ts"
import * as RetryHeaders from "../retry/RetryHeaders.ts"
import type { DeliveryVerdict } from "./DeliveryVerdict.ts"

type WithDeliverySpan = <E, R>(
  delivery: Delivery,
  work: Effect.Effect<DeliveryVerdict, E, R>
) => Effect.Effect<DeliveryVerdict, E, R>

/** Runs the work in a child span of the publisher's span. If that span is not sampled, no child span is created. */
export const make: Effect.Effect<WithDeliverySpan> = Effect.gen(function* () {
  const untraced: WithDeliverySpan = (_, work) => work
  if (!(yield* TraceContext.isTraced)) return untraced
  const clock = yield* Clock.Clock
  const traced: WithDeliverySpan = (delivery, work) => {
    const parent = TraceContext.ofHeaders(delivery.properties.headers)
    if (parent?.sampled === false) return Effect.provideService(work, Tracer.ParentSpan, parent)
    return Effect.useSpan(`process ${delivery.queue}`, spanOptions(delivery, parent), (span) =>
      Effect.map(Effect.provideService(work, Tracer.ParentSpan, span), (verdict) => {
        const { failure } = verdict
        if (failure !== undefined) {
          span.attribute("error.type", failure)
          span.end(clock.currentTimeNanosUnsafe(), Exit.fail(failure))
        }
        return verdict
      })
    )
  }
  return traced
})

const spanOptions = (delivery: Delivery, parent: Tracer.ExternalSpan | undefined): Tracer.SpanOptionsNoTrace => ({
  kind: "consumer",
  // A message without a trace header starts a new trace. The current span belongs to the consumer and never ends.
  ...(parent === undefined ? { root: true } : { parent }),
  attributes: {
    "messaging.operation.name": "process",
    "messaging.operation.type": "process",
    ...MessageAttributes.of(delivery),
    "messaging.destination.subscription.name": delivery.queue,
    "messaging.rabbitmq.message.delivery_tag": delivery.deliveryTag,
    ...retryAttemptOf(delivery)
  }
})

const retryAttemptOf = ({ properties: { headers = {} } }: Delivery) => {
  const attempt = RetryHeaders.attemptOf(headers)
  return attempt === 0 ? {} : { "svc.retry_attempt": attempt }
}

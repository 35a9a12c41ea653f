import { Clock, Context, DateTime, Effect, Layer, Option } from "effect"
import { Upstream } from "../services/Upstream.ts"
import * as Billing from "./Billing.ts"
import { BodyAdmission } from "./BodyAdmission.ts"
import { ControlState } from "./ControlState.ts"
import { Destinations } from "./Destination.ts"
import * as Facts from "./Facts.ts"
import * as Forward from "./Forward.ts"
import { GatewayError } from "./GatewayError.ts"
import * as Headers from "./Headers.ts"
import type { KeyRecord } from "./KeyRecord.ts"
import { Limits, type Reading, type Wanted } from "./Limits.ts"
import * as Meters from "./Meters.ts"
import * as Policy from "./Policy.ts"
import * as Request from "./Request.ts"
import * as RequestBody from "./RequestBody.ts"
import type { Target } from "./Target.ts"
import type { Ended } from "./Telemetry.ts"
import { UsageLog } from "./UsageLog.ts"
import type { UsageRecord } from "./UsageRecord.ts"
import type { BodyLease } from "./Wire.ts"

/** A request that came with a gateway key. Whatever becomes of it, it is recorded, once. */
export class GovernedRequest extends Context.Service<
  GovernedRequest,
  { readonly run: (request: Request.Request, target: Target, key: KeyRecord) => Effect.Effect<Ended> }
>()("svc/gateway/GovernedRequest") {
  static readonly layer = Layer.effect(
    GovernedRequest,
    Effect.gen(function* () {
      const control = yield* ControlState
      const limits = yield* Limits
      const usageLog = yield* UsageLog
      const admission = yield* BodyAdmission
      const destinations = yield* Destinations
      const upstream = yield* Upstream
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()

      const readBody = Effect.fnUntraced(function* (
        request: Request.Request,
        target: Target,
        key: KeyRecord,
        lease: BodyLease
      ) {
        const { config } = target
        if (!config.enabled) {
          return yield* new GatewayError({ code: "disabled_route", message: "Route is disabled by gateway policy." })
        }
        if (!usageLog.hasRoom()) return yield* queueFull
        return yield* RequestBody.read(request.wire, {
          routeId: target.routeId,
          limit: RequestBody.strictest(config.maxRequestBodyBytes, key.policy.max_request_body_bytes),
          withinMs: config.timeoutMs,
          lease,
          wantsUsage: target.accounting === "answer"
        })
      })

      const decide = (target: Target, key: KeyRecord, facts: Facts.Facts, wanted: Wanted) => {
        const decision = Policy.decide(key.policy, {
          route: target.route,
          provider: target.provider,
          facts,
          hourUtc: new Date(now()).getUTCHours(),
          estimatedCostNanos: wanted.nanos
        })
        return decision._tag === "Allowed" ? Effect.void : Effect.fail(new GatewayError(decision.denial))
      }

      const admit = (request: Request.Request, key: KeyRecord, wanted: Wanted) =>
        limits.admit(request.recordId, key.id, Meters.of(key.policy, key.id, DateTime.makeUnsafe(now())), wanted).pipe(
          Effect.tapError(({ cause }) => Effect.logWarning("limits cannot be checked", { cause })),
          Effect.mapError(() => controlStateUnavailable)
        )

      const run = (request: Request.Request, target: Target, key: KeyRecord): Effect.Effect<Ended> => {
        const { wire } = request
        const lease = admission.lease()
        let facts = Facts.none
        let readings: ReadonlyArray<Reading> = []

        const record = (status: number, error: GatewayError | undefined, bill: Billing.Bill): UsageRecord => ({
          id: request.recordId,
          created_at: request.startedAt,
          request_id: request.requestId,
          key_id: key.id,
          project_id: Option.getOrNull(key.projectId),
          route: target.route,
          model: recordable(facts.models[0]),
          provider: target.provider,
          status_code: status,
          error_code: error?.code ?? null,
          latency_ms: now() - request.startedAt,
          usage_source: bill.usageSource,
          input_tokens: bill.usage.input ?? null,
          output_tokens: bill.usage.output ?? null,
          total_tokens: bill.usage.total ?? null,
          cached_input_tokens: bill.usage.cachedInput ?? null,
          cache_write_tokens: bill.usage.cacheWrite ?? null,
          reasoning_tokens: bill.usage.reasoning ?? null,
          cost_nanos: bill.costNanos,
          cost_source: bill.costSource,
          streamed: facts.stream,
          task_id: request.taskId ?? null,
          run_id: request.runId ?? null,
          trace_id: Headers.traceId(request.traceparent) ?? null,
          fallback_count: 0
        })

        const refused = (error: GatewayError): Effect.Effect<Ended> =>
          Effect.map(
            usageLog.settle(undefined, { tokens: 0, nanos: 0 }, record(error.status, error, Billing.nothing)),
            () => {
              Request.refuse(request, error, readings, now())
              return { status: error.status, error, streamed: facts.stream, whole: true, bill: Billing.nothing }
            }
          )

        // From the admission on nothing interrupts but the exchange itself: what was reserved is settled.
        return Effect.uninterruptibleMask((restore) =>
          Effect.gen(function* () {
            const body = yield* restore(readBody(request, target, key, lease))
            facts = body.facts
            const price = control.snapshot().prices.get(facts.models[0] ?? "")
            const wanted = Billing.wanted(target.accounting, facts, price)
            yield* decide(target, key, facts, wanted)
            const { credential, origin, style } = yield* Effect.fromResult(destinations.find(target, key))
            const admitted = yield* restore(admit(request, key, wanted))
            if (admitted._tag === "Refused") {
              readings = [admitted.reading]
              return yield* refusal(admitted.reading, admitted.wanted, now())
            }
            readings = admitted.readings
            const sentAt = now()
            const { finish, passed } = yield* Forward.pass(wire, {
              exchange: {
                origin,
                method: wire.method,
                target: target.target,
                headers: Headers.forUpstream(wire.headers, {
                  credential,
                  style,
                  own: Request.ownHeaders(request, key),
                  plainAnswer: target.accounting === "answer"
                }),
                body: body.bytes,
                headersWithinMs: target.config.timeoutMs,
                idleWithinMs: target.config.timeoutMs
              },
              reading:
                target.accounting === "answer"
                  ? { _tag: "Tokens", family: target.family, hideUsage: body.hideUsage }
                  : { _tag: "Blind" },
              maxResponseBytes: Math.min(
                target.config.maxResponseBodyBytes,
                key.policy.max_response_body_bytes ?? Number.POSITIVE_INFINITY
              ),
              answerHeaders: Request.answerHeaders(request, readings, now()),
              onAnswer: lease.release,
              now
            }).pipe(Effect.provideService(Upstream, upstream))
            const status = passed.status ?? passed.error?.status ?? Request.clientClosed
            const bill = Billing.bill(target.accounting, facts, price, wanted, outcomeOf(passed))
            yield* usageLog.settle(admitted.reservation, bill.settled, record(status, passed.error, bill))
            if (passed.error !== undefined && !passed.headSent) Request.refuse(request, passed.error, readings, now())
            else finish()
            return {
              status,
              error: passed.error,
              streamed: facts.stream,
              whole: passed.whole,
              bill,
              upstreamMs: passed.endedAt - sentAt,
              ...(passed.firstByteAt === undefined ? {} : { firstByteMs: passed.firstByteAt - sentAt })
            }
          })
        ).pipe(Effect.catchTag("GatewayError", refused), Effect.ensuring(Effect.sync(lease.release)))
      }

      return GovernedRequest.of({ run })
    })
  )
}

export const controlStateUnavailable = new GatewayError({
  code: "control_state_unavailable",
  message: "The gateway cannot check limits and keys at the moment. Try again shortly.",
  retryAfterSeconds: 1
})

const queueFull = new GatewayError({
  code: "control_state_unavailable",
  message: "The queue of usage records is full, and the gateway takes no request that it could not account for.",
  retryAfterSeconds: 5
})

const refusal = ({ meter, used }: Reading, wanted: number, now: number): GatewayError =>
  new GatewayError({
    code: Meters.errorCode(meter),
    message: Meters.refusal(meter, used, wanted),
    ...(wanted > meter.limit ? {} : { retryAfterSeconds: Meters.retryAfterSeconds(meter, now) })
  })

const outcomeOf = (passed: Forward.Passed): Billing.Outcome => {
  if (passed.status !== undefined) {
    return passed.status < 400 && (passed.headSent || passed.clientGone)
      ? { _tag: "Answered", seen: passed.seen, whole: passed.whole }
      : { _tag: "Nothing" }
  }
  return passed.clientGone ? { _tag: "Abandoned" } : { _tag: "Nothing" }
}

/** A client's word, made fit for any store: well-formed, without control characters, of bounded length. */
const recordable = (name: string | undefined): string | null =>
  name === undefined
    ? null
    : name
        .toWellFormed()
        .replace(/\p{Cc}/gu, "\ufffd")
        .slice(0, 256)

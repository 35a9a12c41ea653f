import { Clock, Context, Effect, Layer, Option, Result } from "effect"
import { Upstream } from "../services/Upstream.ts"
import * as Billing from "./Billing.ts"
import { BodyAdmission } from "./BodyAdmission.ts"
import { ControlState } from "./ControlState.ts"
import { disabledRoute } from "./DelegatedRequest.ts"
import { type Destination, Destinations } from "./Destination.ts"
import * as Facts from "./Facts.ts"
import * as Forward from "./Forward.ts"
import { GatewayError } from "./GatewayError.ts"
import type { KeyRecord } from "./KeyRecord.ts"
import { Limits, type Reading, type Reservation, type Wanted } from "./Limits.ts"
import * as Meters from "./Meters.ts"
import { allows } from "./model/AllowList.ts"
import type { RouteConfig } from "./model/CanonicalRoute.ts"
import { dearest, type ModelPrice } from "./model/Price.ts"
import * as Outbound from "./Outbound.ts"
import * as Policy from "./Policy.ts"
import * as Request from "./Request.ts"
import * as RequestBody from "./RequestBody.ts"
import * as Target from "./Target.ts"
import type { Ended } from "./Telemetry.ts"
import * as Tracing from "./Tracing.ts"
import { UsageLog } from "./UsageLog.ts"
import * as UsageRecord from "./UsageRecord.ts"
import type { BodyLease } from "./Wire.ts"

/** One upstream to try, under the settings of its route. */
interface Hop {
  readonly destination: Destination
  readonly config: RouteConfig
}

/** A request that came with a gateway key. Whatever becomes of it, it is recorded, once. */
export class GovernedRequest extends Context.Service<
  GovernedRequest,
  {
    /** Fails only where not even a record can be kept. */
    readonly run: (
      request: Request.Request,
      target: Target.Target,
      key: KeyRecord
    ) => Effect.Effect<Ended, GatewayError>
  }
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
      const phase = yield* Tracing.phase
      const clock = yield* Clock.Clock
      const metersOf = Meters.remembering()
      const now = () => clock.currentTimeMillisUnsafe()

      const readBody = (
        request: Request.Request,
        { accounting, config, routeId, usageOnRequest }: Target.Target,
        key: KeyRecord,
        lease: BodyLease
      ) =>
        config.enabled
          ? RequestBody.read(request.wire, {
              routeId,
              limit: RequestBody.strictest(config.maxRequestBodyBytes, key.policy.max_request_body_bytes),
              withinMs: config.timeoutMs,
              lease,
              managed: config.mode === "managed_by_gateway",
              asksForUsage: accounting === "answer" && usageOnRequest
            })
          : Effect.fail(disabledRoute)

      const denialOf = (target: Target.Target, key: KeyRecord, facts: Facts.Facts, wanted: Wanted) => {
        const decision = Policy.decide(key.policy, {
          route: target.route,
          provider: target.provider,
          facts,
          hourUtc: new Date(now()).getUTCHours(),
          estimatedCostNanos: wanted.nanos
        })
        return decision._tag === "Allowed" ? undefined : new GatewayError(decision.denial)
      }

      /**
       * Reference §1.6: what the direct compatible upstream fails, the model proxy may try once. There the path is a
       * route of the gateway, and goes only where the key might have gone by itself.
       */
      const fallbackOf = (target: Target.Target, key: KeyRecord, bytes: number): Option.Option<Hop> => {
        if (target.provider !== "compat") return Option.none()
        return Option.gen(function* () {
          const direct = yield* Result.getSuccess(Target.find("POST", target.target, control.snapshot()))
          const { config, route } = direct
          const open =
            direct.provider === "upstream" &&
            config.enabled &&
            bytes <= config.maxRequestBodyBytes &&
            allows(key.policy.allowed_routes, route) &&
            allows(key.policy.allowed_providers, "upstream")
          if (!open) return yield* Option.none()
          return { destination: yield* Result.getSuccess(destinations.find(direct, key)), config }
        })
      }

      const admit = (request: Request.Request, key: KeyRecord, wanted: Wanted) =>
        Effect.catch(limits.admit(request.recordId, key.id, metersOf(key.policy, key.id, now()), wanted), ({ cause }) =>
          Effect.andThen(Effect.logWarning("limits cannot be checked", { cause }), Effect.fail(controlStateUnavailable))
        )

      const run = (
        request: Request.Request,
        target: Target.Target,
        key: KeyRecord
      ): Effect.Effect<Ended, GatewayError> => {
        const { wire } = request
        // without a record: it would be one more in the queue that is full
        if (!usageLog.hasRoom()) return Effect.fail(queueFull)
        const lease = admission.lease()
        let facts = Facts.none
        let readings: ReadonlyArray<Reading> = []

        const settle = (
          reservation: Reservation | undefined,
          account: Pick<UsageRecord.Account, "status" | "error" | "bill" | "provider" | "fallbackCount">
        ) =>
          usageLog.settle(
            reservation,
            account.bill.settled,
            UsageRecord.of({ ...account, request, target, key, facts, endedAt: now() })
          )

        /** The client hung up before its body was whole: nothing was had, and that it asked is on record. */
        const left = Effect.suspend(() =>
          settle(undefined, {
            status: Request.clientClosed,
            error: undefined,
            bill: Billing.nothing,
            provider: target.provider,
            fallbackCount: 0
          })
        )

        const refused = (error: GatewayError): Effect.Effect<Ended> => {
          const { provider } = target
          const account = { status: error.status, error, bill: Billing.nothing, provider, fallbackCount: 0 }
          return Effect.map(settle(undefined, account), () => {
            Request.refuse(request, error, readings, now())
            return { ...account, streamed: facts.stream, aborted: false }
          })
        }

        const forward = ({ config, destination }: Hop, body: RequestBody.Body, mayFallBack: boolean) => {
          const read = target.accounting === "answer"
          return Forward.pass(upstream, wire, {
            exchange: Outbound.exchange({ request, target, config, destination, key, body: body.bytes, read }),
            reading: read ? { _tag: "Tokens", family: target.family, hideUsage: body.hideUsage } : { _tag: "Blind" },
            maxResponseBytes: Math.min(
              config.maxResponseBodyBytes,
              key.policy.max_response_body_bytes ?? Number.POSITIVE_INFINITY
            ),
            answerHeaders: Request.answerHeaders(request, readings, now()),
            onAnswer: lease.release,
            mayFallBack,
            now
          })
        }

        // From the admission on nothing interrupts but the exchange itself: what was reserved is settled.
        const governed = Effect.uninterruptibleMask((restore) =>
          Effect.catch(
            Effect.gen(function* () {
              const read = restore(readBody(request, target, key, lease))
              const body = yield* phase(
                "gateway.body",
                Effect.onInterrupt(read, () => left)
              )
              facts = body.facts
              const price = priceOf(facts.models, control.snapshot().prices)
              const wanted = Billing.wanted(target.accounting, facts, price)
              const denial = denialOf(target, key, facts, wanted)
              if (denial !== undefined) return yield* denial
              const destination = yield* Effect.fromResult(destinations.find(target, key))
              const fallback = fallbackOf(target, key, body.bytes?.length ?? 0)
              const admitted = yield* phase("gateway.limits.admit", admit(request, key, wanted))
              if (admitted._tag === "Refused") {
                readings = [admitted.reading]
                return yield* refusal(admitted.reading, admitted.wanted, now())
              }
              readings = admitted.readings
              const sentAt = now()
              const first = yield* phase(
                "gateway.upstream",
                forward({ destination, config: target.config }, body, Option.isSome(fallback))
              )
              const fellBack = first.passed.fallsBack && Option.isSome(fallback)
              const { finish, passed } = fellBack
                ? yield* phase("gateway.upstream.fallback", forward(fallback.value, body, false))
                : first
              const bill = Billing.bill(target.accounting, facts, price, wanted, outcomeOf(passed))
              const account = {
                status: passed.status ?? passed.error?.status ?? Request.clientClosed,
                error: passed.error,
                bill,
                provider: fellBack ? ("upstream" as const) : target.provider,
                fallbackCount: fellBack ? 1 : 0
              }
              yield* phase("gateway.settle", settle(admitted.reservation, account))
              if (passed.error !== undefined && !passed.headSent) Request.refuse(request, passed.error, readings, now())
              else finish()
              const ended: Ended = {
                ...account,
                streamed: facts.stream,
                aborted: passed.headSent && !passed.whole,
                upstreamMs: passed.endedAt - sentAt,
                ...(passed.firstByteAt === undefined ? {} : { firstByteMs: passed.firstByteAt - sentAt })
              }
              return ended
            }),
            refused
          )
        )
        return Effect.onExit(governed, () => {
          lease.release()
          return Effect.void
        })
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

/** One model's price, or the dearest of a batch; unknown as soon as one of them is. */
const priceOf = (models: ReadonlyArray<string>, prices: ReadonlyMap<string, ModelPrice>): ModelPrice | undefined => {
  const known = models.map((model) => prices.get(model)).filter((price) => price !== undefined)
  return known.length === models.length ? dearest(known) : undefined
}

const refusal = ({ meter, used }: Reading, wanted: number, now: number): GatewayError =>
  new GatewayError({
    code: Meters.errorCode(meter),
    message: Meters.refusal(meter, used, wanted),
    ...(wanted > meter.limit ? {} : { retryAfterSeconds: Meters.retryAfterSeconds(meter, now) })
  })

const outcomeOf = (passed: Forward.Passed): Billing.Outcome => {
  if (passed.status !== undefined) {
    return passed.status >= 200 && passed.status < 300
      ? { _tag: "Answered", seen: passed.seen, whole: passed.whole }
      : { _tag: "Nothing" }
  }
  return passed.clientGone && passed.begun ? { _tag: "Abandoned" } : { _tag: "Nothing" }
}

import { Cause, Clock, Context, Effect, Exit, Layer, Option, Result } from "effect"
import { Upstream } from "../services/Upstream.ts"
import * as Billing from "./Billing.ts"
import { BodyAdmission } from "./BodyAdmission.ts"
import { ControlState } from "./ControlState.ts"
import { disabledRoute } from "./DelegatedRequest.ts"
import { type Destination, Destinations } from "./Destination.ts"
import * as Facts from "./Facts.ts"
import * as Forward from "./Forward.ts"
import { GatewayError } from "./GatewayError.ts"
import * as GuardedAnswer from "./GuardedAnswer.ts"
import { type Guard, Guarding } from "./Guarding.ts"
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
import type * as Tracing from "./Tracing.ts"
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
    /**
     * Refuses without a record only where none can be kept. A chain of callbacks rather than an effect: it runs for every
     * request, and takes a quarter less of its time so.
     */
    readonly run: (
      request: Request.Request,
      target: Target.Target,
      key: KeyRecord,
      span: Tracing.Span,
      outcome: Request.Outcome
    ) => Request.HungUp
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
      const guarding = yield* Guarding
      const upstream = yield* Upstream
      const log = Effect.runForkWith(yield* Effect.context<never>())
      const clock = yield* Clock.Clock
      const metersOf = Meters.remembering()
      const now = () => clock.currentTimeMillisUnsafe()

      const readOptions = (
        { accounting, config, routeId, usageOnRequest }: Target.Target,
        key: KeyRecord,
        lease: BodyLease
      ): RequestBody.ReadOptions => ({
        routeId,
        limit: RequestBody.strictest(config.maxRequestBodyBytes, key.policy.max_request_body_bytes),
        withinMs: config.timeoutMs,
        lease,
        managed: config.mode === "managed_by_gateway",
        asksForUsage: accounting === "answer" && usageOnRequest
      })

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

      const run: GovernedRequest["Service"]["run"] = (request, target, key, span, outcome) => {
        const { wire } = request
        // without a record: it would be one more in the queue that is full
        if (!usageLog.hasRoom()) {
          outcome.refused(queueFull)
          return () => {}
        }
        const lease = admission.lease()
        let facts = Facts.none
        let guard: Guard | undefined
        let readings: ReadonlyArray<Reading> = []
        /** The client hung up while nothing could be called off: what was reserved is settled, and nothing more begun. */
        let gone = false
        const noted = () => {
          gone = true
        }
        /** What it means, at the moment, that the client hangs up. */
        let hungUp: Request.HungUp = noted

        const failed = (defect: unknown) => {
          lease.release()
          outcome.failed(defect)
        }
        const guarded =
          <A>(step: (value: A) => void) =>
          (value: A): void => {
            try {
              step(value)
            } catch (defect) {
              failed(defect)
            }
          }

        const settle = (reservation: Reservation | undefined, account: Accounted, then: () => void) => {
          const settled = span.phase("gateway.settle")
          usageLog.settle(
            reservation,
            account.bill.settled,
            UsageRecord.of({ ...account, request, target, key, facts, guardrails: guard?.executions, endedAt: now() }),
            guarded<void>(() => {
              settled()
              lease.release()
              then()
            })
          )
        }

        const refuse = (error: GatewayError, reservation?: Reservation) => {
          const account = { ...unaccounted, status: error.status, error, provider: target.provider }
          settle(reservation, account, () => {
            Request.refuse(request, error, readings, now())
            outcome.ended({ ...account, streamed: facts.stream, aborted: false })
          })
        }

        const judgeOf = (held: Guard): GuardedAnswer.Judge => ({
          lease,
          judge: (text, done) => {
            const judged = span.phase("gateway.guardrails")
            held.onAnswer(
              text,
              guarded((answer) => {
                judged()
                done(answer)
              })
            )
          }
        })

        const forward = (
          phase: string,
          { config, destination }: Hop,
          body: RequestBody.Body,
          mayFallBack: boolean,
          then: (settleable: Forward.Settleable) => void
        ) => {
          const read = target.accounting === "answer"
          const held = guard?.readsAnswer === true ? guard : undefined
          const own = Request.answerHeaders(request, readings, now())
          const passage: Forward.Passage = {
            exchange: Outbound.exchange({
              request,
              target,
              config,
              destination,
              key,
              body: body.bytes,
              read: read || held !== undefined
            }),
            reading: read ? { _tag: "Tokens", family: target.family, hideUsage: body.hideUsage } : { _tag: "Blind" },
            maxResponseBytes: Math.min(
              config.maxResponseBodyBytes,
              key.policy.max_response_body_bytes ?? Number.POSITIVE_INFINITY
            ),
            answerHeaders: guard === undefined ? own : [...own, ...guard.headers()],
            onAnswer: lease.release,
            mayFallBack,
            now
          }
          if (gone) return then(Forward.unsent(wire, passage))
          const exchanged = span.phase(phase)
          let over = false
          const passed = (settleable: Forward.Settleable) => {
            over = true
            hungUp = noted
            exchanged()
            then(settleable)
          }
          const cancel =
            held === undefined
              ? Forward.pass(upstream, wire, passage, passed, failed)
              : GuardedAnswer.pass(upstream, wire, passage, judgeOf(held), passed, failed)
          if (!over) hungUp = cancel
        }

        const send = (
          body: RequestBody.Body,
          first: Hop,
          fallback: Option.Option<Hop>,
          reservation: Reservation,
          billOf: (outcome: Billing.Outcome) => Billing.Bill
        ) => {
          const sentAt = now()
          const conclude = ({ finish, passed }: Forward.Settleable, fellBack: boolean) => {
            const account: Accounted = {
              status: passed.status ?? passed.error?.status ?? Request.clientClosed,
              error: passed.error,
              bill: billOf(outcomeOf(passed)),
              provider: fellBack ? "upstream" : target.provider,
              fallbackCount: fellBack ? 1 : 0
            }
            settle(reservation, account, () => {
              if (passed.error !== undefined && !passed.headSent) Request.refuse(request, passed.error, readings, now())
              else finish()
              outcome.ended({
                ...account,
                streamed: facts.stream,
                aborted: passed.headSent && !passed.whole,
                ...(passed.begun ? { upstreamMs: passed.endedAt - sentAt } : {}),
                ...(passed.firstByteAt === undefined ? {} : { firstByteMs: passed.firstByteAt - sentAt })
              })
            })
          }
          forward("gateway.upstream", first, body, Option.isSome(fallback), (settleable) => {
            if (settleable.passed.fallsBack && Option.isSome(fallback)) {
              forward("gateway.upstream.fallback", fallback.value, body, false, (second) => conclude(second, true))
            } else conclude(settleable, false)
          })
        }

        const guardBody = (
          body: RequestBody.Body,
          reservation: Reservation,
          then: (body: RequestBody.Body) => void
        ) => {
          if (guard === undefined || body.bytes === null) return then(body)
          const looked = span.phase("gateway.guardrails")
          guard.onRequest(
            body.bytes,
            guarded((bytes) => {
              looked()
              if (Result.isFailure(bytes)) refuse(bytes.failure, reservation)
              else then({ ...body, bytes: bytes.success })
            })
          )
        }

        const decide = (body: RequestBody.Body) => {
          facts = body.facts
          const price = priceOf(facts.models, control.snapshot().prices)
          const wanted = Billing.wanted(target.accounting, facts, price)
          const denial = denialOf(target, key, facts, wanted)
          if (denial !== undefined) return refuse(denial)
          const selected = guarding.of(request, target, key, key.guardrails, facts)
          if (Result.isFailure(selected)) return refuse(selected.failure)
          guard = selected.success
          const destination = destinations.find(target, key)
          if (Result.isFailure(destination)) return refuse(destination.failure)
          const fallback = fallbackOf(target, key, body.bytes?.length ?? 0)
          const checked = span.phase("gateway.limits.admit")
          limits.admit(
            request.recordId,
            key.id,
            metersOf(key.policy, key.id, now()),
            wanted,
            guarded((exit) => {
              checked()
              if (Exit.isFailure(exit)) {
                log(Effect.logWarning("limits cannot be checked", { cause: Cause.squash(exit.cause) }))
                return refuse(controlStateUnavailable)
              }
              if (exit.value._tag === "Refused") {
                readings = [exit.value.reading]
                return refuse(refusal(exit.value.reading, exit.value.wanted, now()))
              }
              readings = exit.value.readings
              const { reservation } = exit.value
              const hop = { destination: destination.success, config: target.config }
              const billOf = (outcome: Billing.Outcome) =>
                Billing.bill(target.accounting, facts, price, wanted, outcome)
              guardBody(body, reservation, (guardedBody) => send(guardedBody, hop, fallback, reservation, billOf))
            })
          )
        }

        if (!target.config.enabled) {
          refuse(disabledRoute)
          return noted
        }
        let left = false
        const read = span.phase("gateway.body")
        // before its body is whole: nothing was had, and that it asked is on record
        hungUp = guarded<void>(() => {
          left = true
          read()
          settle(undefined, { ...unaccounted, status: Request.clientClosed, provider: target.provider }, () =>
            outcome.ended(Request.left)
          )
        })
        const options = readOptions(target, key, lease)
        RequestBody.read(
          wire,
          options,
          guarded((received) => {
            if (left) return
            hungUp = noted
            read()
            const body = Result.flatMap(received, (bytes) => RequestBody.understand(bytes, options))
            if (Result.isFailure(body)) refuse(body.failure)
            else decide(body.success)
          })
        )
        return () => hungUp()
      }

      return GovernedRequest.of({ run })
    })
  )
}

type Accounted = Pick<UsageRecord.Account, "status" | "error" | "bill" | "provider" | "fallbackCount">

const unaccounted = { error: undefined, bill: Billing.nothing, fallbackCount: 0 } as const

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
  if (models.length === 1) return prices.get(models[0]!)
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
  // what a guardrail keeps from the client was had all the same
  const status = passed.status ?? passed.withheld
  if (status !== undefined) {
    return status >= 200 && status < 300
      ? { _tag: "Answered", seen: passed.seen, whole: passed.whole }
      : { _tag: "Nothing" }
  }
  return passed.clientGone && passed.begun ? { _tag: "Abandoned" } : { _tag: "Nothing" }
}

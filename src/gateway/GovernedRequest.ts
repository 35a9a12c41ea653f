import { Cause, Clock, Context, Effect, Exit, Layer, Option, Result } from "effect"
import { Upstream } from "../services/Upstream.ts"
import * as AnyBody from "./AnyBody.ts"
import * as Billing from "./Billing.ts"
import { BodyAdmission } from "./BodyAdmission.ts"
import { BodyHash } from "./BodyHash.ts"
import { ControlState } from "./ControlState.ts"
import type { CreatedObjects } from "./CreatedObjects.ts"
import { disabledRoute } from "./DelegatedRequest.ts"
import * as Denied from "./Denied.ts"
import { Destinations } from "./Destination.ts"
import * as Fallback from "./Fallback.ts"
import * as Forward from "./Forward.ts"
import { GatewayError, internalError } from "./GatewayError.ts"
import * as GuardedAnswer from "./GuardedAnswer.ts"
import { type Guard, Guarding } from "./Guarding.ts"
import type { KeyRecord } from "./KeyRecord.ts"
import { type Admission, Limits, type Reading, type Reservation, reservedBy } from "./Limits.ts"
import * as Meters from "./Meters.ts"
import { strictest } from "./model/BodyLimit.ts"
import type { EffectivePolicy } from "./model/EffectivePolicy.ts"
import * as Estimate from "./model/Estimate.ts"
import * as Facts from "./model/Facts.ts"
import type { KeyPolicy } from "./model/KeyPolicy.ts"
import * as Policy from "./model/Policy.ts"
import * as Query from "./model/Query.ts"
import type { UpstreamObject } from "./model/UpstreamObjects.ts"
import { ObjectOwners } from "./ObjectOwners.ts"
import * as ObjectRules from "./ObjectRules.ts"
import * as Outbound from "./Outbound.ts"
import * as OutputBound from "./OutputBound.ts"
import * as PublicLocation from "./PublicLocation.ts"
import * as Request from "./Request.ts"
import * as RequestBody from "./RequestBody.ts"
import * as ServiceBilling from "./ServiceBilling.ts"
import type * as Target from "./Target.ts"
import type * as Telemetry from "./Telemetry.ts"
import type * as Tracing from "./Tracing.ts"
import { UsageLog } from "./UsageLog.ts"
import * as UsageRecord from "./UsageRecord.ts"
import type { BodyLease } from "./Wire.ts"

/** A request that came with a gateway key. Whatever becomes of it, it is recorded, once. */
export class GovernedRequest extends Context.Service<
  GovernedRequest,
  {
    /**
     * Refuses without a record only where none can be kept. `subject`: who sends it beside the key, where that is
     * known. A chain of callbacks rather than an effect: it runs for every request, and takes a quarter less of its
     * time so.
     */
    readonly run: (
      request: Request.Request,
      target: Target.Target,
      key: KeyRecord,
      subject: string | undefined,
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
      const owners = yield* ObjectOwners
      const upstream = yield* Upstream
      const log = Effect.runForkWith(yield* Effect.context<never>())
      const clock = yield* Clock.Clock
      const metersOf = Meters.remembering()
      const now = () => clock.currentTimeMillisUnsafe()
      const later = (ms: number, run: () => void) => {
        const timer = log(Effect.delay(Effect.sync(run), ms))
        return () => timer.interruptUnsafe()
      }

      const readOptions = (
        { accounting, config, routeId, usageOnRequest }: Target.Target,
        policy: KeyPolicy,
        lease: BodyLease,
        hash: BodyHash
      ): RequestBody.ReadOptions => ({
        routeId,
        limit: strictest(config.maxRequestBodyBytes, policy.max_request_body_bytes),
        withinMs: config.timeoutMs,
        lease,
        managed: config.mode === "managed_by_gateway",
        asksForUsage: accounting === "answer" && usageOnRequest,
        hash
      })

      const questionOf = (
        { provider, route, service, target: asked }: Target.Target,
        key: KeyRecord,
        running: number,
        startedAt: number
      ): Policy.Question => ({
        route,
        provider,
        service: service && { name: service.service.name, linked: key.services },
        worksLater: Policy.worksLater(provider, asked),
        facts: Facts.none,
        requestBytes: 0,
        responseBytes: undefined,
        hourUtc: Math.floor(startedAt / 3_600_000) % 24,
        running,
        estimatedCostNanos: 0,
        unpricedModels: []
      })

      const run: GovernedRequest["Service"]["run"] = (request, target, key, subject, span, outcome) => {
        const { wire } = request
        const asked: ObjectRules.Asked = { owners, target, key }
        // without a record: it would be one more in the queue that is full
        if (!usageLog.hasRoom()) {
          outcome.refused(queueFull)
          return () => {}
        }
        const lease = admission.lease(key.id)
        const { bodyHashKey } = control.snapshot()
        const sent = new BodyHash(bodyHashKey)
        /** Of the answer that the client gets, which is another's after a fallback. */
        let answered: BodyHash | undefined
        /** Until the body is read, without what it says. */
        let question = questionOf(target, key, outcome.runs(key.id), request.startedAt)
        let facts = Facts.none
        let { accounting } = target
        /** Until the body is read, without the layers of models. */
        let effective = control.policyOf(key, target.route, [])
        const scopesOf = (effective: EffectivePolicy) => control.limitScopes(key, effective)
        let guard: Guard | undefined
        /** Of the upstream that answers, which is another after a fallback: what its answer makes known. */
        let watch: CreatedObjects | undefined
        let answering = target.provider
        let readings: ReadonlyArray<Reading> = []
        /**
         * The client hung up while nothing could be called off: what was reserved is settled, and nothing more begun.
         */
        let gone = false
        const noted = () => {
          gone = true
        }
        /** What it means, at the moment, that the client hangs up. */
        let hungUp: Request.HungUp = noted

        /** What the limits hold for it, until it is settled. */
        let reserved: Reservation | undefined
        let billOf: ((outcome: Billing.Outcome) => Billing.Bill) | undefined
        /** The upstream may have had it. */
        let begun = false
        /** What came of the exchange, and what the client saw of it. */
        let exchange: { readonly account: Accounted; readonly headSent: boolean } | undefined
        let recorded = false

        /** The account of a request that the gateway fails on at this moment: what was had is paid for all the same. */
        const failure = (): Accounted => ({
          ...unaccounted,
          provider: target.provider,
          bill: (begun ? billOf?.(unseen) : undefined) ?? Billing.nothing,
          ...exchange?.account,
          status: exchange?.headSent === true ? exchange.account.status : internalError.status,
          error: internalError
        })

        const failed = (defect: unknown) => {
          lease.release()
          if (recorded) return outcome.failed(defect)
          try {
            settle(reserved, failure(), () => outcome.failed(defect))
          } catch (another) {
            log(Effect.logError("a request that failed is not recorded", { defect: another }))
            outcome.failed(defect)
          }
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
          // it failed meanwhile
          if (recorded) return
          const settled = span.phase("gateway.settle")
          const record = UsageRecord.of({
            ...account,
            request,
            target,
            key,
            facts,
            policy: effective,
            guardrails: guard?.executions,
            requestHash: sent.digest(),
            responseHash: answered?.digest(),
            endedAt: now()
          })
          recorded = true
          usageLog.settle(
            reservation,
            account.bill.settled,
            record,
            guarded<void>(() => {
              settled()
              lease.release()
              then()
            })
          )
        }

        const refuse = (error: GatewayError, denial?: Denied.Denied, reservation?: Reservation) => {
          const account: Accounted = { ...unaccounted, status: error.status, error, provider: target.provider, denial }
          settle(reservation, account, () => {
            Request.refuse(request, error, readings, now())
            outcome.ended({ ...account, streamed: facts.stream, aborted: false })
          })
        }

        const deny = (denial: Policy.Denial) =>
          refuse(new GatewayError(denial), Denied.ofRequest(denial, effective, question))

        /** `fits`: how much output would have had room. */
        const refuseFull = ({ reading, wanted }: Extract<Admission, { readonly _tag: "Refused" }>, fits?: number) => {
          readings = [reading]
          refuse(Meters.refusal(reading.meter, reading.used, wanted, now(), fits), Denied.ofLimit(reading.meter))
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

        /** Answers that are read whole before the client sees any of them: for guardrails, or because they list objects. */
        const judge = (): GuardedAnswer.Judge | undefined => {
          const held = guard?.readsAnswer === true ? judgeOf(guard) : undefined
          const leaves = ObjectRules.listFilter(asked)
          if (leaves === undefined) return held
          const filter: GuardedAnswer.Judge["judge"] = (text, done) => leaves(text, guarded(done))
          if (held === undefined) return { lease, unreadable: ObjectRules.noList, judge: filter }
          return {
            lease,
            judge: (text, done) =>
              held.judge(text, (judged) => (Result.isFailure(judged) ? done(judged) : filter(judged.success, done)))
          }
        }

        const forward = (
          phase: string,
          { config, destination, policy }: Fallback.Hop,
          body: RequestBody.Body,
          mayFallBack: boolean,
          sentAt: number,
          then: (settleable: Forward.Settleable) => void
        ) => {
          const read = accounting === "answer"
          const held = judge()
          const found = (objects: ReadonlyArray<UpstreamObject>) => owners.remember(answering, objects, key, () => {})
          watch = ObjectRules.watchOf(target.objects, wire.method, found, facts)
          answered = new BodyHash(bodyHashKey)
          const own = Request.answerHeaders(request, readings, sentAt)
          const passage: Forward.Passage = {
            exchange: Outbound.exchange({
              request,
              target,
              config,
              destination,
              key,
              body: body.passing?.bytes ?? body.bytes,
              read: read || held !== undefined || watch !== undefined
            }),
            credential: destination.credential,
            reading: read ? { _tag: "Tokens", family: target.family, hideUsage: body.hideUsage } : { _tag: "Blind" },
            maxResponseBytes: Math.min(
              config.maxResponseBodyBytes,
              policy.max_response_body_bytes ?? Number.POSITIVE_INFINITY
            ),
            endsByEvent: target.routeId !== "service" && target.routeId !== "compat",
            stream: streamsUnlimited(policy)
              ? undefined
              : {
                  seconds: policy.max_stream_duration_seconds,
                  eventBytes: policy.max_sse_event_bytes,
                  later
                },
            answerHeaders: guard === undefined ? own : [...own, ...guard.headers()],
            onAnswer: lease.release,
            mayFallBack,
            bodyRefusal: body.passing?.refusal,
            watch,
            hash: answered,
            headers: PublicLocation.atGateway(wire.target, target.target, destination.origin),
            now
          }
          if (gone) return then(Forward.unsent(wire, passage))
          const exchanged = span.phase(phase)
          begun = true
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
              : GuardedAnswer.pass(upstream, wire, passage, held, passed, failed)
          if (!over) hungUp = cancel
        }

        const send = (
          body: RequestBody.Body,
          first: Fallback.Hop,
          fallback: Option.Option<Fallback.Hop>,
          reservation: Reservation,
          billed: (outcome: Billing.Outcome) => Billing.Bill
        ) => {
          const sentAt = now()
          if (facts.stream) outcome.streams()
          const conclude = ({ finish, passed }: Forward.Settleable, fallback?: Telemetry.Fallback) => {
            const objects = watch?.objects() ?? []
            const account: Accounted = {
              objects: objects.length === 0 ? undefined : objects,
              status: passed.status ?? passed.error?.status ?? Request.clientClosed,
              error: passed.error,
              bill: billed(outcomeOf(passed)),
              provider: fallback === undefined ? target.provider : fallback.to,
              fallbackCount: fallback === undefined ? 0 : 1,
              fallbackReason: fallback?.reason,
              upstreamMs: passed.begun ? passed.endedAt - sentAt : undefined,
              denial: passed.cutBy === undefined ? undefined : Denied.ofAnswer(passed.cutBy, effective, target.config)
            }
            exchange = { account, headSent: passed.headSent }
            const end = () =>
              settle(reservation, account, () => {
                if (passed.error !== undefined && !passed.headSent)
                  Request.refuse(request, passed.error, readings, now())
                else finish()
                outcome.ended({
                  ...account,
                  streamed: facts.stream,
                  aborted: passed.headSent && !passed.whole,
                  fallback,
                  ...(passed.firstByteAt === undefined ? {} : { firstByteMs: passed.firstByteAt - sentAt })
                })
              })
            // who reads an id may use it at once
            const untold = watch?.untold() ?? []
            if (untold.length === 0) end()
            else owners.remember(account.provider, untold, key, guarded<void>(end))
          }
          forward("gateway.upstream", first, body, Option.isSome(fallback), sentAt, (settleable) => {
            if (settleable.passed.fallsBack && Option.isSome(fallback)) {
              const { error, withheld } = settleable.passed
              const reason = withheld === undefined ? (error?.code ?? "internal_error") : `http_${withheld}`
              answering = "upstream"
              // nothing was had of the first
              begun = false
              forward("gateway.upstream.fallback", fallback.value, body, false, now(), (second) =>
                conclude(second, { from: target.provider, to: "upstream", reason })
              )
            } else conclude(settleable)
          })
        }

        const guardBody = (
          body: RequestBody.Body,
          reservation: Reservation,
          then: (body: RequestBody.Body) => void
        ) => {
          if (guard === undefined || body.bytes === null || body.bytes.length === 0) return then(body)
          if (body.opaque) {
            const refusal = guard.onOpaque()
            return refusal === undefined ? then(body) : refuse(refusal, undefined, reservation)
          }
          const looked = span.phase("gateway.guardrails")
          guard.onRequest(
            body.bytes,
            guarded((bytes) => {
              looked()
              if (Result.isFailure(bytes)) refuse(bytes.failure, undefined, reservation)
              else then({ ...body, bytes: bytes.success })
            })
          )
        }

        /** `received`: bytes of the body as it came. `charge`: what a registered service asks for it. */
        const decide = (body: RequestBody.Body, received: number, charge?: ServiceBilling.Charge) => {
          facts = Facts.withTarget(body.facts, target)
          effective = control.policyOf(key, target.route, Facts.everyModel(facts))
          accounting = Estimate.accountingFor(target.accounting, facts)
          const { prices } = control.snapshot()
          const price = Estimate.priceOf(facts, prices)
          const meters = metersOf(effective, scopesOf, now())
          const bound = OutputBound.of(target, facts, price, effective.policy, meters.all)
          const estimate = Estimate.wanted(accounting, facts, price, bound)
          const wanted = charge?.wanted ?? estimate
          question = {
            ...question,
            facts,
            requestBytes: received,
            estimatedCostNanos: wanted.nanos,
            unpricedModels:
              effective.policy.unpriced_models === "refuse" && charge === undefined
                ? Estimate.unpriced(accounting, facts, prices)
                : []
          }
          const decision = Policy.decide(effective.policy, question)
          if (decision._tag === "Denied") return deny(decision.denial)
          const shared = question.worksLater ? meters.all.find(({ unit }) => unit !== "requests") : undefined
          if (shared !== undefined) {
            const denial = Policy.laterWork(shared.scope.nameOf(shared.field))
            return refuse(new GatewayError(denial), Denied.ofLimit(shared))
          }
          const selected = guarding.of(request, target, key, subject, effective.guardrails, facts)
          if (Result.isFailure(selected)) return refuse(selected.failure)
          guard = selected.success
          const ungoverned = !question.worksLater
            ? undefined
            : control.snapshot().layers.of.model.size > 0
              ? "policies of models"
              : guard?.readsAnswer === true
                ? "a guardrail that looks at answers"
                : undefined
          if (ungoverned !== undefined)
            return refuse(new GatewayError(Policy.laterWork(ungoverned)), { check: "later_work" })
          const destination = destinations.find(target, key)
          if (Result.isFailure(destination)) return refuse(destination.failure)
          const fallback = Fallback.find(control, destinations, target, key, question, body.bytes?.length ?? 0)
          const checked = span.phase("gateway.limits.admit")
          limits.admit(
            request.recordId,
            meters,
            wanted,
            guarded((exit) => {
              checked()
              if (Exit.isFailure(exit)) {
                const unavailable = Result.getOrUndefined(Cause.findError(exit.cause))
                const cause = unavailable?.cause ?? Cause.squash(exit.cause)
                log(Effect.logWarning("limits cannot be checked", { cause }))
                return refuse(controlStateUnavailable, undefined, unavailable?.reservation)
              }
              if (exit.value._tag === "Refused") {
                const { meter } = exit.value.reading
                return refuseFull(
                  exit.value,
                  charge === undefined ? Estimate.roomForOutput(facts, price, meter) : undefined
                )
              }
              readings = exit.value.readings
              const { reservation } = exit.value
              reserved = reservation
              const hop = { destination: destination.success, config: target.config, policy: effective.policy }
              const billed =
                charge?.bill ??
                ((outcome: Billing.Outcome) => Billing.bill(accounting, facts, price, estimate, outcome))
              billOf = billed
              const bounded = OutputBound.written(target.routeId, body, bound)
              const go = () =>
                guardBody(bounded, reservation, (guardedBody) => send(guardedBody, hop, fallback, reservation, billed))
              const used = ObjectRules.usedBy(target.objects, facts.references)
              if (used.length === 0 && target.objects._tag !== "Unclear") return go()
              ObjectRules.refusalOf(
                asked,
                used,
                guarded((refusal) => (refusal === undefined ? go() : refuse(refusal, undefined, reservation)))
              )
            })
          )
        }

        /** A meter that is known to have no room for another request. */
        const fullNow = () => limits.full(() => metersOf(effective, scopesOf, now()))

        const begin = () => {
          if (!target.config.enabled) return refuse(disabledRoute)
          const misplaced = target.routeId === "service" ? undefined : Query.deciding(target.target, Facts.bodyMembers)
          if (misplaced !== undefined && wire.method === "POST") return refuse(inTheQuery(misplaced))
          const decision = Policy.decideBeforeBody(effective.policy, question)
          if (decision._tag === "Denied") return deny(decision.denial)
          const full = fullNow()
          if (full !== undefined) return refuseFull({ _tag: "Refused", reading: full, wanted: 1 })
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
          const options = readOptions(target, effective.policy, lease, sent)
          const { service } = target
          const whenRead = <A>(step: (value: A) => void) =>
            guarded((value: A) => {
              if (left) return
              hungUp = noted
              read()
              step(value)
            })
          /**
           * A body that was refused for what the client sent counts as a request: reading it was work, and a key with
           * few requests would have any number of them.
           */
          const refuseBody = (failure: GatewayError) => {
            const byPolicy = failure.code === "request_body_too_large" && options.limit.setBy !== "the route"
            const denial = byPolicy ? Denied.ofBody(effective) : undefined
            if (failure.status >= 500) return refuse(failure, denial)
            limits.admit(
              request.recordId,
              metersOf(effective, scopesOf, now()),
              Estimate.requestAlone,
              guarded((exit) => refuse(failure, denial, reservedBy(exit)))
            )
          }
          if (target.routeId !== "service" && target.routeId !== "compat") {
            RequestBody.read(
              wire,
              options,
              whenRead((received) => {
                if (Result.isSuccess(received) && (received.success?.length ?? 0) > largeBody) {
                  // filled while the body came: parsing it would be for nothing
                  const full = fullNow()
                  if (full !== undefined) return refuseFull({ _tag: "Refused", reading: full, wanted: 1 })
                }
                const body = Result.flatMap(received, (bytes) => RequestBody.understand(bytes, options))
                if (Result.isFailure(body)) refuseBody(body.failure)
                else decide(body.success, Result.getOrUndefined(received)?.length ?? 0)
              })
            )
          } else {
            const bodiesDecide = (unsized: boolean) =>
              service === undefined ||
              Policy.looksAtBodies(effective.policy, unsized) ||
              control.snapshot().layers.of.model.size > 0 ||
              guarding.looksAtRequests(effective.guardrails)
            AnyBody.read(
              wire,
              service,
              options,
              bodiesDecide,
              whenRead((understood) => {
                const body = understood()
                if (Result.isFailure(body)) refuseBody(body.failure)
                else {
                  const charge = service && ServiceBilling.of(service, body.success)
                  decide(body.success, body.success.bytes?.length ?? 0, charge)
                }
              })
            )
          }
        }
        guarded<void>(begin)()
        return () => hungUp()
      }

      return GovernedRequest.of({ run })
    })
  )
}

type Accounted = Pick<
  UsageRecord.Account,
  "status" | "error" | "bill" | "provider" | "fallbackCount" | "fallbackReason" | "upstreamMs" | "denial" | "objects"
>

const unaccounted = { error: undefined, bill: Billing.nothing, fallbackCount: 0, denial: undefined } as const

export const controlStateUnavailable = new GatewayError({
  code: "control_state_unavailable",
  message: "The gateway cannot check limits and keys at the moment. Try again shortly.",
  retryAfterSeconds: 1
})

export const queueFull = new GatewayError({
  code: "control_state_unavailable",
  message: "The queue of usage records is full, and the gateway takes no request that it could not account for.",
  retryAfterSeconds: 5
})

/** Of an exchange in which the gateway failed: there may have been an answer, of which nothing is known. */
const unseen: Billing.Outcome = {
  _tag: "Answered",
  seen: { reported: undefined, guessedOutput: undefined },
  whole: false
}

/** Parsing one of more bytes takes longer than looking whether it is wanted. */
const largeBody = 16_384

const inTheQuery = (member: string) =>
  new GatewayError({
    code: "invalid_request_body",
    message: `Send "${member}" in the body: some upstreams would take the query's for it.`,
    param: member
  })

const streamsUnlimited = ({ max_sse_event_bytes, max_stream_duration_seconds }: KeyPolicy): boolean =>
  max_sse_event_bytes._tag === "Unlimited" && max_stream_duration_seconds._tag === "Unlimited"

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

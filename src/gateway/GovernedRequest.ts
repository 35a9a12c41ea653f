import { Cause, Effect, Exit, Option, Result } from "effect"
import type { EffectivePolicy } from "../policy/EffectivePolicy.ts"
import * as Estimate from "../policy/Estimate.ts"
import * as Facts from "../policy/facts/Facts.ts"
import type { KeyPolicy } from "../policy/KeyPolicy.ts"
import * as Policy from "../policy/Policy.ts"
import type { ModelPrice } from "../policy/Price.ts"
import * as Refusals from "../policy/Refusals.ts"
import type * as Routing from "../policy/Routing.ts"
import { type BodyLimit, ofAnswers, ofRequests } from "../policy/routes/BodyLimit.ts"
import { filtered, listed } from "../policy/routes/UpstreamObjects.ts"
import type { BodyLease } from "../services/BodyLeases.ts"
import type { Seldom } from "../services/Seldom.ts"
import type { Upstream } from "../services/Upstream.ts"
import type { Denied as DeniedRecord } from "../state/UsageRecord.ts"
import type { CreatedObjects } from "./forward/CreatedObjects.ts"
import type { Destinations } from "./forward/Destination.ts"
import * as Fallback from "./forward/Fallback.ts"
import * as Forward from "./forward/Forward.ts"
import * as GuardedAnswer from "./forward/GuardedAnswer.ts"
import type { ObjectOwners } from "./forward/ObjectOwners.ts"
import * as ObjectRules from "./forward/ObjectRules.ts"
import * as Outbound from "./forward/Outbound.ts"
import * as OutputBound from "./forward/OutputBound.ts"
import * as PublicLocation from "./forward/PublicLocation.ts"
import * as RequestEnd from "./forward/RequestEnd.ts"
import { controlStateUnavailable, event, GatewayError, internalError } from "./GatewayError.ts"
import type { Guard, Guarding } from "./Guarding.ts"
import { type Admission, type Limits, type LimitsUnavailable, type Reservation, reservedBy } from "./limits/Limits.ts"
import type { Reading } from "./limits/Meters.ts"
import * as Meters from "./limits/Meters.ts"
import * as AnyBody from "./request/AnyBody.ts"
import type { BodyAdmission } from "./request/BodyAdmission.ts"
import { BodyHash } from "./request/BodyHash.ts"
import type * as Request from "./request/Request.ts"
import * as RequestBody from "./request/RequestBody.ts"
import type { ControlState } from "./snapshot/ControlState.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import type { UpstreamFallback } from "./telemetry/Ended.ts"
import type * as Tracing from "./telemetry/Tracing.ts"
import * as Billing from "./usage/Billing.ts"
import * as Denied from "./usage/Denied.ts"
import * as RequestAccount from "./usage/RequestAccount.ts"
import * as ServiceBilling from "./usage/ServiceBilling.ts"
import type { UsageLog } from "./usage/UsageLog.ts"

/** The services that all governed requests of a process share. */
export interface Shared {
  readonly control: ControlState["Service"]
  readonly limits: Limits["Service"]
  readonly usageLog: UsageLog["Service"]
  readonly admission: BodyAdmission["Service"]
  readonly destinations: Destinations["Service"]
  readonly guarding: Guarding["Service"]
  readonly owners: ObjectOwners["Service"]
  readonly upstream: Upstream["Service"]
  readonly metersOf: ReturnType<typeof Meters.remembering>
  readonly now: () => number
  /** Runs `run` after so long, unless the function that it returns is called before. */
  readonly later: (ms: number, run: () => void) => () => void
  /** To be told of each model that an upstream answered for and that has no price; none where the request names none. */
  readonly unpriced: (model: string | undefined) => void
  readonly log: (message: Effect.Effect<void>) => void
  readonly seldom: Seldom
}

/** The sender of a request. `subject` is the caller that an identity names beside the key. */
export interface Sender {
  readonly key: KeyRecord
  readonly subject: string | undefined
}

/**
 * One request that came with a gateway key. Its methods stand in the order in which they run: the request is read,
 * decided, admitted, guarded, sent and settled. Each calls the next one from a callback rather than in an effect,
 * because this runs for every request, and takes a quarter less of its time so.
 *
 * Whatever becomes of the request, it is recorded once.
 */
export class GovernedRequest {
  readonly #shared: Shared
  readonly #request: Request.Request
  readonly #target: Routing.Target
  readonly #sender: Sender
  readonly #span: Tracing.Span
  readonly #outcome: RequestEnd.RequestEnd
  readonly #lease: BodyLease
  readonly #requestHash: BodyHash

  /** Until the body is read, without what it says. */
  #question: Policy.Question
  #facts = Facts.none
  #accounting: Estimate.Accounting
  /** Until the body is read, without the layers of models. */
  #effective: EffectivePolicy
  #guard: Guard | undefined
  #readings: ReadonlyArray<Reading> = []
  /** The limits hold this, or may hold it, for the request until it is settled. */
  #reservation: Reservation | undefined
  /** Says what an exchange with the upstream costs, once the request is admitted. */
  #billOf: ((outcome: Billing.Outcome) => Billing.Bill) | undefined
  #fallback: Option.Option<Fallback.Hop> = Option.none()
  /** The provider of the upstream that answers, which is another one after a fallback. */
  #answering: Routing.Target["provider"]
  #sentAt = 0
  /** The upstream may have had the request. */
  #begun = false
  /** Reads which objects the answer makes known. */
  #watch: CreatedObjects | undefined
  /** The fingerprint of the answer that the client gets. */
  #responseHash: BodyHash | undefined
  /** The account of the exchange, and whether the client has seen the head of its answer. */
  #exchange: { readonly account: Account; readonly headSent: boolean } | undefined
  /** Set with the record. */
  #model: string | undefined
  #recorded = false

  /** Calls off what is under way when the client hangs up; `undefined` while nothing can be called off. */
  #callOff: (() => void) | undefined
  /** The client hung up while nothing could be called off: nothing more is begun, and what is reserved is settled. */
  #gone = false

  constructor(
    shared: Shared,
    request: Request.Request,
    target: Routing.Target,
    sender: Sender,
    span: Tracing.Span,
    outcome: RequestEnd.RequestEnd
  ) {
    const { key } = sender
    const { control } = shared
    this.#shared = shared
    this.#request = request
    this.#target = target
    this.#sender = sender
    this.#span = span
    this.#outcome = outcome
    this.#lease = shared.admission.lease(key.id)
    this.#requestHash = new BodyHash(control.snapshot().bodyHashKey)
    this.#question = questionOf(target, key, outcome.runs(key.id), request.startedAt)
    this.#accounting = target.accounting
    this.#effective = control.policyOf(key, target.route, [])
    this.#answering = target.provider
  }

  /** Returns what to call when the client hangs up. */
  run(): RequestEnd.HungUp {
    try {
      this.#begin()
    } catch (defect) {
      this.#failed(defect)
    }
    return () => {
      if (this.#callOff === undefined) this.#gone = true
      else this.#callOff()
    }
  }

  // begin: what needs no body

  #begin() {
    const refusal = Refusals.beforeBody(
      this.#request.wire.method,
      this.#target,
      this.#effective,
      this.#question,
      this.#modelLayers(),
      () => this.#full()
    )
    if (refusal === undefined) this.#read()
    else if ("meter" in refusal) this.#refuseFull({ _tag: "Refused", reading: refusal, wanted: 1 })
    else this.#deny(refusal)
  }

  // read: the body

  #read() {
    const { accounting, config, routeId, service, usageOnRequest } = this.#target
    const { wire } = this.#request
    const { policy } = this.#effective
    const options: RequestBody.ReadOptions = {
      routeId,
      limit: ofRequests(config, policy.max_request_body_bytes),
      withinMs: config.timeoutMs,
      lease: this.#lease,
      managed: config.mode === "managed_by_gateway",
      asksForUsage: accounting === "answer" && usageOnRequest,
      hash: this.#requestHash
    }
    const ended = this.#span.phase("gateway.body")
    this.#callOff = this.#guarded<void>(() => {
      ended()
      this.#clientLeft()
    })
    const whenRead = <A>(step: (value: A) => void) =>
      this.#guarded((value: A) => {
        // the client left before
        if (this.#recorded) return
        this.#callOff = undefined
        ended()
        step(value)
      })
    if (routeId === "service" || routeId === "compat") {
      AnyBody.read(
        wire,
        service,
        options,
        (unsized) => this.#bodiesDecide(unsized),
        whenRead((understood) => {
          const body = understood()
          if (Result.isFailure(body)) return this.#refuseBody(body.failure, options.limit)
          const charge = service && ServiceBilling.of(service, body.success)
          this.#decide(body.success, body.success.bytes?.length ?? 0, charge)
        })
      )
    } else {
      RequestBody.read(
        wire,
        options,
        whenRead((received) => {
          if (Result.isFailure(received)) return this.#refuseBody(received.failure, options.limit)
          const length = received.success?.length ?? 0
          if (length > largeBody) {
            // filled while the body came: parsing it would be for nothing
            const full = this.#full()
            if (full !== undefined) return this.#refuseFull({ _tag: "Refused", reading: full, wanted: 1 })
          }
          const body = RequestBody.understand(received.success, options)
          if (Result.isFailure(body)) this.#refuseBody(body.failure, options.limit)
          else this.#decide(body.success, length)
        })
      )
    }
  }

  /** Something decides by the bodies of a route whose bodies are not the gateway's to understand. */
  #bodiesDecide(unsized: boolean): boolean {
    const { guarding } = this.#shared
    return (
      this.#target.service === undefined ||
      Policy.looksAtBodies(this.#effective.policy, unsized) ||
      this.#modelLayers().size > 0 ||
      guarding.looksAtRequests(this.#effective.guardrails)
    )
  }

  // decide: by the policy, and what the request will cost at the most

  /** `received`: bytes of the body as it came. `charge`: what a registered service asks for it. */
  #decide(body: RequestBody.Body, received: number, charge?: ServiceBilling.Charge) {
    const { control, destinations, guarding } = this.#shared
    const { key, subject } = this.#sender
    const target = this.#target
    const facts = Facts.withTarget(body.facts, target)
    const effective = control.policyOf(key, target.route, Facts.everyModel(facts))
    const accounting = Estimate.accountingFor(target.accounting, facts)
    this.#facts = facts
    this.#effective = effective
    this.#accounting = accounting
    const { prices } = control.snapshot()
    const price = Estimate.priceOf(facts, prices)
    const meters = this.#meters()
    const bound = OutputBound.of(target, facts, price, effective.policy, meters.all)
    const estimate = Estimate.wanted(accounting, facts, price, bound)
    const wanted = charge?.wanted ?? estimate
    this.#question = {
      ...this.#question,
      facts,
      requestBytes: received,
      estimatedCostNanos: wanted.nanos,
      unpricedModels:
        effective.policy.unpriced_models === "refuse" && charge === undefined
          ? Estimate.unpriced(accounting, facts, prices)
          : []
    }
    const guard = guarding.of(this.#request, target, key, subject, effective.guardrails, facts)
    const refusal = Refusals.afterBody(effective, this.#question, this.#modelLayers(), guard)
    if (refusal !== undefined) return this.#deny(refusal)
    this.#guard = Result.getOrUndefined(guard)
    const destination = destinations.find(target, this.#request.family, key)
    if (Result.isFailure(destination)) return this.#refuse(destination.failure)
    this.#fallback = Fallback.find(control, destinations, target, key, this.#question, body.bytes?.length ?? 0)
    const hop = { destination: destination.success, config: target.config, policy: effective.policy }
    this.#admit(body, hop, bound, meters, { charge, estimate, price, wanted })
  }

  // admit: by the limits, and by whose objects the request uses

  #admit(
    body: RequestBody.Body,
    hop: Fallback.Hop,
    bound: OutputBound.OutputBound,
    meters: Meters.RequestMeters,
    cost: Cost
  ) {
    const checked = this.#span.phase("gateway.limits.admit")
    this.#shared.limits.admitUnsafe(
      this.#request.recordId,
      meters,
      cost.wanted,
      this.#guarded((exit) => {
        checked()
        if (Exit.isFailure(exit)) return this.#refuseUnavailable(exit.cause)
        if (exit.value._tag === "Refused") return this.#refuseFull(exit.value, cost)
        this.#readings = exit.value.readings
        this.#reservation = exit.value.reservation
        this.#billOf = this.#billing(cost)
        this.#admitObjects(OutputBound.written(this.#target.routeId, body, bound), hop)
      })
    )
  }

  #billing({ charge, estimate, price }: Cost): (outcome: Billing.Outcome) => Billing.Bill {
    return charge?.bill ?? ((outcome) => Billing.bill(this.#accounting, this.#facts, price, estimate, outcome))
  }

  #admitObjects(body: RequestBody.Body, hop: Fallback.Hop) {
    const { objects } = this.#target
    const used = ObjectRules.usedBy(objects, this.#facts.references)
    if (used.length === 0 && objects._tag !== "Unclear") return this.#guardBody(body, hop)
    ObjectRules.refusalOf(
      this.#asked(),
      used,
      this.#guarded((refusal) => (refusal === undefined ? this.#guardBody(body, hop) : this.#refuse(refusal)))
    )
  }

  #asked(): ObjectRules.Asked {
    return { owners: this.#shared.owners, target: this.#target, key: this.#sender.key }
  }

  // guard: the body

  #guardBody(body: RequestBody.Body, hop: Fallback.Hop) {
    const guard = this.#guard
    if (guard === undefined || body.bytes === null || body.bytes.length === 0) return this.#send(body, hop)
    if (body.opaque) {
      const refusal = guard.onOpaque()
      return refusal === undefined ? this.#send(body, hop) : this.#refuse(refusal)
    }
    const looked = this.#span.phase("gateway.guardrails")
    guard.onRequest(
      body.bytes,
      this.#guarded((bytes) => {
        looked()
        if (Result.isFailure(bytes)) this.#refuse(bytes.failure)
        else this.#send({ ...body, bytes: bytes.success }, hop)
      })
    )
  }

  // send: to the upstream, and to another one where the first says that it cannot

  #send(body: RequestBody.Body, first: Fallback.Hop) {
    const { now } = this.#shared
    this.#sentAt = now()
    if (this.#facts.stream) this.#outcome.streams()
    this.#forward("gateway.upstream", first, body, Option.isSome(this.#fallback), this.#sentAt, (settleable) => {
      const { passed } = settleable
      if (!passed.fallsBack || Option.isNone(this.#fallback)) return this.#conclude(settleable)
      const reason =
        passed.withheld === undefined ? (passed.error?.code ?? "internal_error") : `http_${passed.withheld}`
      this.#answering = "upstream"
      // nothing was had of the first
      this.#begun = false
      this.#forward("gateway.upstream.fallback", this.#fallback.value, body, false, now(), (second) =>
        this.#conclude(second, { from: this.#target.provider, to: "upstream", reason })
      )
    })
  }

  #forward(
    phase: string,
    hop: Fallback.Hop,
    body: RequestBody.Body,
    mayFallBack: boolean,
    sentAt: number,
    then: (settleable: Forward.Settleable) => void
  ) {
    const { upstream } = this.#shared
    const { wire } = this.#request
    const judge = this.#judge()
    const passageWith = (traceparent: string | undefined) =>
      this.#passage(hop, body, mayFallBack, sentAt, judge !== undefined, traceparent)
    if (this.#gone) return then(Forward.unsent(wire, passageWith(undefined)))
    const exchange = this.#span.exchange(phase, hop.destination.base.origin)
    const passage = passageWith(exchange.traceparent)
    this.#begun = true
    let over = false
    const passed = (settleable: Forward.Settleable) => {
      over = true
      this.#callOff = undefined
      exchange.end(settleable.passed.status ?? settleable.passed.withheld)
      then(settleable)
    }
    const failed = (defect: unknown) => this.#failed(defect)
    const cancel =
      judge === undefined
        ? Forward.pass(upstream, wire, passage, passed, failed)
        : GuardedAnswer.pass(upstream, wire, passage, judge, passed, failed)
    if (!over) this.#callOff = cancel
  }

  #passage(
    { config, destination, policy }: Fallback.Hop,
    body: RequestBody.Body,
    mayFallBack: boolean,
    sentAt: number,
    judged: boolean,
    traceparent: string | undefined
  ): Forward.Passage {
    const { control, later, now, owners } = this.#shared
    const { key } = this.#sender
    const request = this.#request
    const target = this.#target
    const provider = this.#answering
    const read = this.#accounting === "answer"
    this.#watch = ObjectRules.watchOf(
      target.objects,
      request.wire.method,
      (objects) => owners.rememberUnsafe(provider, objects, key, () => {}),
      this.#facts
    )
    this.#responseHash = new BodyHash(control.snapshot().bodyHashKey)
    const own = RequestEnd.answerHeaders(request, this.#readings, sentAt)
    return {
      exchange: Outbound.exchange({
        request,
        target,
        config,
        destination,
        key,
        body: body.passing?.bytes ?? body.bytes,
        traceparent,
        read: read || judged || this.#watch !== undefined
      }),
      credential: destination.credential,
      reading: read ? { _tag: "Tokens", family: target.family, hideUsage: body.hideUsage } : { _tag: "Blind" },
      limits: ofAnswers(config, policy.max_response_body_bytes),
      endsByEvent: target.routeId !== "service" && target.routeId !== "compat",
      errorEvent: (error) => event(error, request.family, request.requestId),
      stream: streamsUnlimited(policy)
        ? undefined
        : { seconds: policy.max_stream_duration_seconds, eventBytes: policy.max_sse_event_bytes, later },
      answerHeaders: this.#guard === undefined ? own : [...own, ...this.#guard.headers()],
      onAnswer: this.#lease.release,
      mayFallBack,
      bodyRefusal: body.passing?.refusal,
      watch: this.#watch,
      hash: this.#responseHash,
      headers: PublicLocation.atGateway(request.wire.target, target.target, destination.base),
      now
    }
  }

  #modelLayers() {
    return this.#shared.control.snapshot().layers.of.model
  }

  /** Leaves of the list of models those that the key may use; `undefined` where it may use them all. */
  #modelFilter(): GuardedAnswer.Judge | undefined {
    const { routeId } = this.#target
    const isRestricted = this.#effective.policy.allowed_models._tag === "Allow" || this.#modelLayers().size > 0
    if (routeId !== "models" || !isRestricted || this.#target.model !== undefined) return undefined
    return {
      lease: this.#lease,
      unreadable: noModels,
      // what is no list tells of no model
      judge: (text, done) => {
        const keep = listed(text)?.map((model) =>
          Refusals.mayUseModel(this.#effective.policy, this.#modelLayers(), model)
        )
        done(Result.succeed(keep === undefined || keep.every((kept) => kept) ? text : filtered(text, keep)))
      }
    }
  }

  /** For answers that are read whole before the client sees any of them: for guardrails, or because they list objects. */
  #judge(): GuardedAnswer.Judge | undefined {
    const guard = this.#guard?.readsAnswer === true ? this.#guard : undefined
    const leaves = ObjectRules.listFilter(this.#asked())
    const filter: GuardedAnswer.Judge["judge"] | undefined =
      leaves && ((text, done) => leaves(text, this.#guarded(done)))
    if (guard === undefined && this.#target.routeId === "models") return this.#modelFilter()
    if (guard === undefined) return filter && { lease: this.#lease, unreadable: ObjectRules.noList, judge: filter }
    const judge: GuardedAnswer.Judge["judge"] = (text, done) => {
      const judged = this.#span.phase("gateway.guardrails")
      guard.onAnswer(
        text,
        this.#guarded((answer) => {
          judged()
          if (filter === undefined || Result.isFailure(answer)) done(answer)
          else filter(answer.success, done)
        })
      )
    }
    return { lease: this.#lease, judge }
  }

  // settle: what was used takes the place of the reservation, and the record is written

  #conclude({ finish, passed }: Forward.Settleable, fallback?: UpstreamFallback) {
    const { now, owners } = this.#shared
    const objects = this.#watch?.objects() ?? []
    const account: Account = {
      objects: objects.length === 0 ? undefined : objects,
      status: passed.status ?? passed.error?.status ?? RequestEnd.clientClosed,
      error: passed.error,
      bill: this.#billOf?.(outcomeOf(passed)) ?? Billing.nothing,
      provider: fallback === undefined ? this.#target.provider : fallback.to,
      fallbackCount: fallback === undefined ? 0 : 1,
      fallbackReason: fallback?.reason,
      upstreamMs: passed.begun ? passed.endedAt - this.#sentAt : undefined,
      denial:
        passed.cutBy === undefined ? undefined : Denied.ofAnswer(passed.cutBy, this.#effective, this.#target.config)
    }
    this.#exchange = { account, headSent: passed.headSent }
    const end = () =>
      this.#settle(account, () => {
        if (passed.error !== undefined && !passed.headSent)
          RequestEnd.refuse(this.#request, passed.error, this.#readings, now())
        else finish()
        this.#outcome.ended({
          ...account,
          model: this.#model,
          streamed: this.#facts.stream,
          aborted: passed.headSent && !passed.whole,
          fallback,
          ...(passed.firstByteAt === undefined ? {} : { firstByteMs: passed.firstByteAt - this.#sentAt })
        })
      })
    // who reads an id may use it at once
    const untold = this.#watch?.untold() ?? []
    if (untold.length === 0) end()
    else owners.rememberUnsafe(account.provider, untold, this.#sender.key, this.#guarded<void>(end))
  }

  #settle(account: Account, then: () => void): void {
    // it failed meanwhile
    if (this.#recorded) return
    const settled = this.#span.phase("gateway.settle")
    const record = RequestAccount.toRecord({
      ...account,
      request: this.#request,
      target: this.#target,
      key: this.#sender.key,
      facts: this.#facts,
      policy: this.#effective,
      guardrails: this.#guard?.executions,
      requestHash: this.#requestHash.digest(),
      responseHash: this.#responseHash?.digest(),
      endedAt: this.#shared.now()
    })
    this.#recorded = true
    this.#model = record.model ?? undefined
    if (record.cost_source === "route_default" && record.status_code < 400) {
      this.#shared.unpriced(this.#model)
    }
    this.#shared.usageLog.settleUnsafe(
      this.#reservation,
      account.bill.settled,
      record,
      this.#guarded<void>(() => {
        settled()
        this.#lease.release()
        then()
      })
    )
  }

  // the other ends

  #refuse(error: GatewayError, denial?: DeniedRecord) {
    const account: Account = { ...unaccounted, status: error.status, error, provider: this.#target.provider, denial }
    this.#settle(account, () => {
      RequestEnd.refuse(this.#request, error, this.#readings, this.#shared.now())
      this.#outcome.ended({ ...account, model: this.#model, streamed: this.#facts.stream, aborted: false })
    })
  }

  #deny(refusal: Refusals.Refusal) {
    this.#refuse(new GatewayError(refusal), Denied.ofRequest(refusal))
  }

  #refuseFull({ reading, wanted }: Extract<Admission, { readonly _tag: "Refused" }>, cost?: Cost) {
    const { meter, used } = reading
    this.#readings = [reading]
    const fits =
      cost === undefined || cost.charge !== undefined
        ? undefined
        : Estimate.roomForOutput(this.#facts, cost.price, meter)
    this.#refuse(Meters.refusal(meter, used, wanted, this.#shared.now(), fits), Denied.ofLimit(meter, this.#effective))
  }

  #refuseUnavailable(cause: Cause.Cause<LimitsUnavailable>) {
    const unavailable = Result.getOrUndefined(Cause.findError(cause))
    this.#reservation = unavailable?.reservation
    const { log, seldom } = this.#shared
    const why = unavailable?.cause ?? Cause.squash(cause)
    log(seldom("limits", (leftOut) => Effect.logWarning("limits cannot be checked", { cause: why, ...leftOut })))
    this.#refuse(controlStateUnavailable)
  }

  /**
   * A body that is refused for what the client sent counts as a request: reading it was work, and a key with few requests
   * would have any number of them.
   */
  #refuseBody(failure: GatewayError, limit: BodyLimit) {
    const byPolicy = failure.code === "request_body_too_large" && limit.setBy === "this key's policy"
    const denial = byPolicy ? Denied.ofBody(this.#effective) : undefined
    if (failure.status >= 500) return this.#refuse(failure, denial)
    this.#shared.limits.admitUnsafe(
      this.#request.recordId,
      this.#meters(),
      Estimate.requestAlone,
      this.#guarded((exit) => {
        this.#reservation = reservedBy(exit)
        this.#refuse(failure, denial)
      })
    )
  }

  /** Before the body is whole: nothing was had, and that the client asked is on record. */
  #clientLeft() {
    this.#settle({ ...unaccounted, status: RequestEnd.clientClosed, provider: this.#target.provider }, () =>
      this.#outcome.ended(RequestEnd.left)
    )
  }

  /** A defect of the gateway. What was had until then is paid for all the same. */
  #failed(defect: unknown) {
    this.#lease.release()
    if (this.#recorded) return this.#outcome.failed(defect)
    const exchange = this.#exchange
    try {
      const account: Account = {
        ...unaccounted,
        provider: this.#target.provider,
        bill: (this.#begun ? this.#billOf?.(unseen) : undefined) ?? Billing.nothing,
        ...exchange?.account,
        status: exchange?.headSent === true ? exchange.account.status : internalError.status,
        error: internalError
      }
      this.#settle(account, () => this.#outcome.failed(defect))
    } catch (another) {
      this.#shared.log(Effect.logError("a request that failed is not recorded", { defect: another }))
      this.#outcome.failed(defect)
    }
  }

  /** As `step`, for a callback: what it throws is a defect of the request. */
  #guarded<A>(step: (value: A) => void): (value: A) => void {
    return (value) => {
      try {
        step(value)
      } catch (defect) {
        this.#failed(defect)
      }
    }
  }

  #meters(): Meters.RequestMeters {
    const { control, metersOf, now } = this.#shared
    return metersOf(this.#effective, (effective) => control.limitScopes(this.#sender.key, effective), now())
  }

  /** A meter that is known to have no room for another request. */
  #full(): Reading | undefined {
    return this.#shared.limits.full(() => this.#meters())
  }
}

/** The supposed cost of a request, and how its real cost is found. */
interface Cost {
  /** The price of a registered service for the request. */
  readonly charge: ServiceBilling.Charge | undefined
  readonly estimate: ReturnType<typeof Estimate.wanted>
  readonly price: ModelPrice | undefined
  readonly wanted: Estimate.Wanted
}

type Account = Pick<
  RequestAccount.RequestAccount,
  "status" | "error" | "bill" | "provider" | "fallbackCount" | "fallbackReason" | "upstreamMs" | "denial" | "objects"
>

const unaccounted = { error: undefined, bill: Billing.nothing, fallbackCount: 0, denial: undefined } as const

const questionOf = (
  { provider, route, service, target }: Routing.Target,
  key: KeyRecord,
  running: number,
  startedAt: number
): Policy.Question => ({
  route,
  provider,
  service: service && { name: service.service.name, linked: key.services },
  worksLater: Policy.worksLater(provider, target),
  facts: Facts.none,
  requestBytes: 0,
  responseBytes: undefined,
  hourUtc: Math.floor(startedAt / 3_600_000) % 24,
  running,
  estimatedCostNanos: 0,
  unpricedModels: []
})

/** The gateway failed during the exchange: there may have been an answer, of which nothing is known. */
const unseen: Billing.Outcome = {
  _tag: "Answered",
  seen: { reported: undefined, guessedOutput: undefined },
  whole: false
}

const noModels = new GatewayError({
  code: "upstream_connection",
  message:
    "The upstream's answer is no list of models in JSON, so the gateway cannot tell which of them this key may use."
})

/** Parsing one of more bytes takes longer than looking whether it is wanted. */
const largeBody = 16_384

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

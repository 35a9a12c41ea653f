import { Cause, Effect, Exit, Option, Result } from "effect"
import type { EffectivePolicy } from "../policy/EffectivePolicy.ts"
import * as Estimate from "../policy/Estimate.ts"
import * as Facts from "../policy/facts/Facts.ts"
import type { KeyPolicy } from "../policy/KeyPolicy.ts"
import * as Policy from "../policy/Policy.ts"
import type { ModelPrice } from "../policy/Price.ts"
import * as Refusals from "../policy/Refusals.ts"
import type * as Routing from "../policy/Routing.ts"
import { type BodyLimit, ofRequests, ofResponses } from "../policy/routes/BodyLimit.ts"
import { filteredList, listedIds } from "../policy/routes/UpstreamObjects.ts"
import type { BodyLease } from "../services/BodyLeases.ts"
import type { LogThrottle } from "../services/LogThrottle.ts"
import type { Upstream } from "../services/Upstream.ts"
import type { DenialRecord as DeniedRecord } from "../state/UsageRecord.ts"
import * as BufferedResponse from "./forward/BufferedResponse.ts"
import type { CreatedObjects } from "./forward/CreatedObjects.ts"
import type { Destinations } from "./forward/Destination.ts"
import * as Fallback from "./forward/Fallback.ts"
import * as Forward from "./forward/Forward.ts"
import * as LocationHeaders from "./forward/LocationHeaders.ts"
import * as MaxTokens from "./forward/MaxTokens.ts"
import * as ObjectAccess from "./forward/ObjectAccess.ts"
import type { ObjectOwners } from "./forward/ObjectOwners.ts"
import * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import * as UpstreamRequest from "./forward/UpstreamRequest.ts"
import { controlStateUnavailable, errorEvent, GatewayError, internalError } from "./GatewayError.ts"
import type { MeterReading } from "./limits/Meters.ts"
import * as Meters from "./limits/Meters.ts"
import {
  type Admission,
  type LimitsUnavailable,
  type Reservation,
  reservationOf,
  type UsageLimits
} from "./limits/UsageLimits.ts"
import type { GuardrailRunner, RequestGuardrails } from "./RequestGuardrails.ts"
import type { BodyAdmission } from "./request/BodyAdmission.ts"
import { BodyHash } from "./request/BodyHash.ts"
import * as LenientBody from "./request/LenientBody.ts"
import type * as Request from "./request/Request.ts"
import * as RequestBody from "./request/RequestBody.ts"
import type { ControlState } from "./snapshot/ControlState.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import type { UpstreamFallback } from "./telemetry/RequestOutcome.ts"
import type * as Tracing from "./telemetry/Tracing.ts"
import * as Billing from "./usage/Billing.ts"
import * as DenialRecords from "./usage/DenialRecords.ts"
import * as RequestAccount from "./usage/RequestAccount.ts"
import * as ServiceBilling from "./usage/ServiceBilling.ts"
import type { UsageLog } from "./usage/UsageLog.ts"

/** The services that all governed requests of a process share. */
export interface SharedServices {
  readonly control: ControlState["Service"]
  readonly limits: UsageLimits["Service"]
  readonly usageLog: UsageLog["Service"]
  readonly admission: BodyAdmission["Service"]
  readonly destinations: Destinations["Service"]
  readonly guardrails: RequestGuardrails["Service"]
  readonly owners: ObjectOwners["Service"]
  readonly upstream: Upstream["Service"]
  readonly metersFor: ReturnType<typeof Meters.memoizedMeters>
  readonly now: () => number
  /** Runs `run` after so long, unless the function that it returns is called before. */
  readonly schedule: (ms: number, run: () => void) => () => void
  /** To be told of each model that an upstream answered for and that has no price; none where the request names none. */
  readonly reportUnpriced: (model: string | undefined) => void
  readonly log: (message: Effect.Effect<void>) => void
  readonly logThrottle: LogThrottle
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
  readonly #shared: SharedServices
  readonly #request: Request.Request
  readonly #target: Routing.Target
  readonly #sender: Sender
  readonly #span: Tracing.Span
  readonly #outcome: RequestLifecycle.RequestLifecycle
  readonly #lease: BodyLease
  readonly #requestHash: BodyHash

  /** Until the body is read, without what it says. */
  #question: Policy.PolicyRequest
  #facts = Facts.noFacts
  #accounting: Estimate.Accounting
  /** Until the body is read, without the layers of models. */
  #effective: EffectivePolicy
  #guard: GuardrailRunner | undefined
  #readings: ReadonlyArray<MeterReading> = []
  /** The limits hold this, or may hold it, for the request until it is settled. */
  #reservation: Reservation | undefined
  /** Says what an exchange with the upstream costs, once the request is admitted. */
  #billOf: ((outcome: Billing.ExchangeOutcome) => Billing.Bill) | undefined
  #fallback: Option.Option<Fallback.UpstreamCandidate> = Option.none()
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
    shared: SharedServices,
    request: Request.Request,
    target: Routing.Target,
    sender: Sender,
    span: Tracing.Span,
    outcome: RequestLifecycle.RequestLifecycle
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
    this.#question = questionOf(target, key, outcome.startRunning(key.id), request.startedAt)
    this.#accounting = target.accounting
    this.#effective = control.policyOf(key, target.route, [])
    this.#answering = target.provider
  }

  /** Returns what to call when the client hangs up. */
  run(): RequestLifecycle.OnDisconnect {
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
    const { accounting, config, routeId, service, isUsageOptIn } = this.#target
    const { wire } = this.#request
    const { policy } = this.#effective
    const options: RequestBody.ReadOptions = {
      routeId,
      limit: ofRequests(config, policy.max_request_body_bytes),
      withinMs: config.timeoutMs,
      lease: this.#lease,
      managed: config.mode === "managed_by_gateway",
      requestsUsage: accounting === "answer" && isUsageOptIn,
      hash: this.#requestHash
    }
    const ended = this.#span.startPhase("gateway.body")
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
      LenientBody.read(
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
          if (length > largeBodyBytes) {
            // filled while the body came: parsing it would be for nothing
            const full = this.#full()
            if (full !== undefined) return this.#refuseFull({ _tag: "Refused", reading: full, wanted: 1 })
          }
          const body = RequestBody.parse(received.success, options)
          if (Result.isFailure(body)) this.#refuseBody(body.failure, options.limit)
          else this.#decide(body.success, length)
        })
      )
    }
  }

  /** Something decides by the bodies of a route whose bodies are not the gateway's to understand. */
  #bodiesDecide(unsized: boolean): boolean {
    const { guardrails } = this.#shared
    return (
      this.#target.service === undefined ||
      Policy.dependsOnBody(this.#effective.policy, unsized) ||
      this.#modelLayers().size > 0 ||
      guardrails.inspectsRequests(this.#effective.guardrails)
    )
  }

  // decide: by the policy, and what the request will cost at the most

  /** `received`: bytes of the body as it came. `charge`: what a registered service asks for it. */
  #decide(body: RequestBody.Body, received: number, charge?: ServiceBilling.ServiceCharge) {
    const { control, destinations, guardrails } = this.#shared
    const { key, subject } = this.#sender
    const target = this.#target
    const facts = Facts.withTarget(body.facts, target)
    const effective = control.policyOf(key, target.route, Facts.allModels(facts))
    const accounting = Estimate.accountingWithBody(target.accounting, facts)
    this.#facts = facts
    this.#effective = effective
    this.#accounting = accounting
    const { prices } = control.snapshot()
    const price = Estimate.priceOfRequest(facts, prices)
    const meters = this.#meters()
    const bound = MaxTokens.of(target, facts, price, effective.policy, meters.all)
    const estimate = Estimate.estimateUsage(accounting, facts, price, bound)
    const wanted = charge?.wanted ?? estimate
    this.#question = {
      ...this.#question,
      facts,
      requestBytes: received,
      estimatedCostNanos: wanted.nanos,
      unpricedModels:
        effective.policy.unpriced_models === "refuse" && charge === undefined
          ? Estimate.unpricedModels(accounting, facts, prices)
          : []
    }
    const guard = guardrails.runnerFor(this.#request, target, key, subject, effective.guardrails, facts)
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
    hop: Fallback.UpstreamCandidate,
    bound: MaxTokens.MaxTokens,
    meters: Meters.RequestMeters,
    cost: RequestCost
  ) {
    const checked = this.#span.startPhase("gateway.limits.admit")
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
        this.#admitObjects(MaxTokens.writeTo(this.#target.routeId, body, bound), hop)
      })
    )
  }

  #billing({ charge, estimate, price }: RequestCost): (outcome: Billing.ExchangeOutcome) => Billing.Bill {
    return charge?.bill ?? ((outcome) => Billing.bill(this.#accounting, this.#facts, price, estimate, outcome))
  }

  #admitObjects(body: RequestBody.Body, hop: Fallback.UpstreamCandidate) {
    const { objects } = this.#target
    const used = ObjectAccess.objectsUsed(objects, this.#facts.references)
    if (used.length === 0 && objects._tag !== "Unclear") return this.#guardBody(body, hop)
    ObjectAccess.checkAccess(
      this.#asked(),
      used,
      this.#guarded((refusal) => (refusal === undefined ? this.#guardBody(body, hop) : this.#refuse(refusal)))
    )
  }

  #asked(): ObjectAccess.ObjectAccess {
    return { owners: this.#shared.owners, target: this.#target, key: this.#sender.key }
  }

  // guard: the body

  #guardBody(body: RequestBody.Body, hop: Fallback.UpstreamCandidate) {
    const guard = this.#guard
    if (guard === undefined || body.bytes === null || body.bytes.length === 0) return this.#send(body, hop)
    if (body.opaque) {
      const refusal = guard.refusalOfOpaqueBody()
      return refusal === undefined ? this.#send(body, hop) : this.#refuse(refusal)
    }
    const looked = this.#span.startPhase("gateway.guardrails")
    guard.inspectRequest(
      body.bytes,
      this.#guarded((bytes) => {
        looked()
        if (Result.isFailure(bytes)) this.#refuse(bytes.failure)
        else this.#send({ ...body, bytes: bytes.success }, hop)
      })
    )
  }

  // send: to the upstream, and to another one where the first says that it cannot

  #send(body: RequestBody.Body, first: Fallback.UpstreamCandidate) {
    const { now } = this.#shared
    this.#sentAt = now()
    if (this.#facts.stream) this.#outcome.startStreaming()
    this.#forward("gateway.upstream", first, body, Option.isSome(this.#fallback), this.#sentAt, (settleable) => {
      const { result } = settleable
      if (!result.canFallBack || Option.isNone(this.#fallback)) return this.#conclude(settleable)
      const reason =
        result.withheldStatus === undefined ? (result.error?.code ?? "internal_error") : `http_${result.withheldStatus}`
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
    hop: Fallback.UpstreamCandidate,
    body: RequestBody.Body,
    mayFallBack: boolean,
    sentAt: number,
    then: (settleable: Forward.PendingResponse) => void
  ) {
    const { upstream } = this.#shared
    const { wire } = this.#request
    const judge = this.#judge()
    const passageWith = (traceparent: string | undefined) =>
      this.#passage(hop, body, mayFallBack, sentAt, judge !== undefined, traceparent)
    if (this.#gone) return then(Forward.neverSent(wire, passageWith(undefined)))
    const exchange = this.#span.startExchange(phase, hop.destination.base.origin)
    const passage = passageWith(exchange.traceparent)
    this.#begun = true
    let over = false
    const passed = (settleable: Forward.PendingResponse) => {
      over = true
      this.#callOff = undefined
      exchange.end(settleable.result.status ?? settleable.result.withheldStatus)
      then(settleable)
    }
    const failed = (defect: unknown) => this.#failed(defect)
    const cancel =
      judge === undefined
        ? Forward.send(upstream, wire, passage, passed, failed)
        : BufferedResponse.send(upstream, wire, passage, judge, passed, failed)
    if (!over) this.#callOff = cancel
  }

  #passage(
    { config, destination, policy }: Fallback.UpstreamCandidate,
    body: RequestBody.Body,
    mayFallBack: boolean,
    sentAt: number,
    judged: boolean,
    traceparent: string | undefined
  ): Forward.ForwardOptions {
    const { control, schedule, now, owners } = this.#shared
    const { key } = this.#sender
    const request = this.#request
    const target = this.#target
    const provider = this.#answering
    const read = this.#accounting === "answer"
    this.#watch = ObjectAccess.observerFor(
      target.objects,
      request.wire.method,
      (objects) => owners.rememberUnsafe(provider, objects, key, () => {}),
      this.#facts
    )
    this.#responseHash = new BodyHash(control.snapshot().bodyHashKey)
    const own = RequestLifecycle.responseHeaders(request, this.#readings, sentAt)
    return {
      exchange: UpstreamRequest.toExchange({
        request,
        target,
        config,
        destination,
        key,
        body: body.streamed?.bytes ?? body.bytes,
        traceparent,
        readsResponse: read || judged || this.#watch !== undefined
      }),
      credential: destination.credential,
      usageReading: read ? { _tag: "Tokens", family: target.family, hideUsage: body.hideUsage } : { _tag: "Blind" },
      limits: ofResponses(config, policy.max_response_body_bytes),
      hasTerminalEvent: target.routeId !== "service" && target.routeId !== "compat",
      renderErrorEvent: (error) => errorEvent(error, request.family, request.requestId),
      streamLimits: hasNoStreamLimits(policy)
        ? undefined
        : { maxSeconds: policy.max_stream_duration_seconds, maxEventBytes: policy.max_sse_event_bytes, schedule },
      addedHeaders: this.#guard === undefined ? own : [...own, ...this.#guard.responseHeaders()],
      onResponse: this.#lease.release,
      mayFallBack,
      requestBodyRefusal: body.streamed?.refusal,
      observer: this.#watch,
      responseHash: this.#responseHash,
      rewriteHeaders: LocationHeaders.forClient(request.wire.target, target.target, destination.base),
      now
    }
  }

  #modelLayers() {
    return this.#shared.control.snapshot().layers.of.model
  }

  /** Leaves of the list of models those that the key may use; `undefined` where it may use them all. */
  #modelFilter(): BufferedResponse.ResponseInspector | undefined {
    const { routeId } = this.#target
    const isRestricted = this.#effective.policy.allowed_models._tag === "Allow" || this.#modelLayers().size > 0
    if (routeId !== "models" || !isRestricted || this.#target.model !== undefined) return undefined
    return {
      lease: this.#lease,
      notJsonError: unreadableModelList,
      // what is no list tells of no model
      inspect: (text, done) => {
        const keep = listedIds(text)?.map((model) =>
          Refusals.isModelAllowed(this.#effective.policy, this.#modelLayers(), model)
        )
        done(Result.succeed(keep === undefined || keep.every((kept) => kept) ? text : filteredList(text, keep)))
      }
    }
  }

  /** For answers that are read whole before the client sees any of them: for guardrails, or because they list objects. */
  #judge(): BufferedResponse.ResponseInspector | undefined {
    const guard = this.#guard?.inspectsResponse === true ? this.#guard : undefined
    const leaves = ObjectAccess.listFilter(this.#asked())
    const filter: BufferedResponse.ResponseInspector["inspect"] | undefined =
      leaves && ((text, done) => leaves(text, this.#guarded(done)))
    if (guard === undefined && this.#target.routeId === "models") return this.#modelFilter()
    if (guard === undefined)
      return filter && { lease: this.#lease, notJsonError: ObjectAccess.unreadableList, inspect: filter }
    const judge: BufferedResponse.ResponseInspector["inspect"] = (text, done) => {
      const judged = this.#span.startPhase("gateway.guardrails")
      guard.inspectResponse(
        text,
        this.#guarded((answer) => {
          judged()
          if (filter === undefined || Result.isFailure(answer)) done(answer)
          else filter(answer.success, done)
        })
      )
    }
    return { lease: this.#lease, inspect: judge }
  }

  // settle: what was used takes the place of the reservation, and the record is written

  #conclude({ finish, result }: Forward.PendingResponse, fallback?: UpstreamFallback) {
    const { now, owners } = this.#shared
    const objects = this.#watch?.objects() ?? []
    const account: Account = {
      objects: objects.length === 0 ? undefined : objects,
      status: result.status ?? result.error?.status ?? RequestLifecycle.clientClosedStatus,
      error: result.error,
      bill: this.#billOf?.(billingOutcomeOf(result)) ?? Billing.unbilled,
      provider: fallback === undefined ? this.#target.provider : fallback.to,
      fallbackCount: fallback === undefined ? 0 : 1,
      fallbackReason: fallback?.reason,
      upstreamMs: result.requestSent ? result.endedAt - this.#sentAt : undefined,
      denial:
        result.cutBy === undefined
          ? undefined
          : DenialRecords.ofResponse(result.cutBy, this.#effective, this.#target.config)
    }
    this.#exchange = { account, headSent: result.headSent }
    const end = () =>
      this.#settle(account, () => {
        if (result.error !== undefined && !result.headSent)
          RequestLifecycle.sendRefusal(this.#request, result.error, this.#readings, now())
        else finish()
        this.#outcome.end({
          ...account,
          model: this.#model,
          streamed: this.#facts.stream,
          aborted: result.headSent && !result.isComplete,
          fallback,
          ...(result.firstByteAt === undefined ? {} : { firstByteMs: result.firstByteAt - this.#sentAt })
        })
      })
    // who reads an id may use it at once
    const untold = this.#watch?.unannounced() ?? []
    if (untold.length === 0) end()
    else owners.rememberUnsafe(account.provider, untold, this.#sender.key, this.#guarded<void>(end))
  }

  #settle(account: Account, then: () => void): void {
    // it failed meanwhile
    if (this.#recorded) return
    const settled = this.#span.startPhase("gateway.settle")
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
      this.#shared.reportUnpriced(this.#model)
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
    const account: Account = { ...emptyAccount, status: error.status, error, provider: this.#target.provider, denial }
    this.#settle(account, () => {
      RequestLifecycle.sendRefusal(this.#request, error, this.#readings, this.#shared.now())
      this.#outcome.end({ ...account, model: this.#model, streamed: this.#facts.stream, aborted: false })
    })
  }

  #deny(refusal: Refusals.PolicyRefusal) {
    this.#refuse(new GatewayError(refusal), DenialRecords.ofRequest(refusal))
  }

  #refuseFull({ reading, wanted }: Extract<Admission, { readonly _tag: "Refused" }>, cost?: RequestCost) {
    const { meter, used } = reading
    this.#readings = [reading]
    const fits =
      cost === undefined || cost.charge !== undefined
        ? undefined
        : Estimate.outputTokensThatFit(this.#facts, cost.price, meter)
    this.#refuse(
      Meters.refusal(meter, used, wanted, this.#shared.now(), fits),
      DenialRecords.ofLimit(meter, this.#effective)
    )
  }

  #refuseUnavailable(cause: Cause.Cause<LimitsUnavailable>) {
    const unavailable = Result.getOrUndefined(Cause.findError(cause))
    this.#reservation = unavailable?.reservation
    const { log, logThrottle } = this.#shared
    const why = unavailable?.cause ?? Cause.squash(cause)
    log(logThrottle("limits", (leftOut) => Effect.logWarning("limits cannot be checked", { cause: why, ...leftOut })))
    this.#refuse(controlStateUnavailable)
  }

  /**
   * A body that is refused for what the client sent counts as a request: reading it was work, and a key with few requests
   * would have any number of them.
   */
  #refuseBody(failure: GatewayError, limit: BodyLimit) {
    const byPolicy = failure.code === "request_body_too_large" && limit.setBy === "this key's policy"
    const denial = byPolicy ? DenialRecords.ofBody(this.#effective) : undefined
    if (failure.status >= 500) return this.#refuse(failure, denial)
    this.#shared.limits.admitUnsafe(
      this.#request.recordId,
      this.#meters(),
      Estimate.requestOnly,
      this.#guarded((exit) => {
        this.#reservation = reservationOf(exit)
        this.#refuse(failure, denial)
      })
    )
  }

  /** Before the body is whole: nothing was had, and that the client asked is on record. */
  #clientLeft() {
    this.#settle(
      { ...emptyAccount, status: RequestLifecycle.clientClosedStatus, provider: this.#target.provider },
      () => this.#outcome.end(RequestLifecycle.clientClosedOutcome)
    )
  }

  /** A defect of the gateway. What was had until then is paid for all the same. */
  #failed(defect: unknown) {
    this.#lease.release()
    if (this.#recorded) return this.#outcome.fail(defect)
    const exchange = this.#exchange
    try {
      const account: Account = {
        ...emptyAccount,
        provider: this.#target.provider,
        bill: (this.#begun ? this.#billOf?.(unknownOutcome) : undefined) ?? Billing.unbilled,
        ...exchange?.account,
        status: exchange?.headSent === true ? exchange.account.status : internalError.status,
        error: internalError
      }
      this.#settle(account, () => this.#outcome.fail(defect))
    } catch (another) {
      this.#shared.log(Effect.logError("a request that failed is not recorded", { defect: another }))
      this.#outcome.fail(defect)
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
    const { control, metersFor, now } = this.#shared
    return metersFor(this.#effective, (effective) => control.limitScopes(this.#sender.key, effective), now())
  }

  /** A meter that is known to have no room for another request. */
  #full(): MeterReading | undefined {
    return this.#shared.limits.fullMeter(() => this.#meters())
  }
}

/** The supposed cost of a request, and how its real cost is found. */
interface RequestCost {
  /** The price of a registered service for the request. */
  readonly charge: ServiceBilling.ServiceCharge | undefined
  readonly estimate: ReturnType<typeof Estimate.estimateUsage>
  readonly price: ModelPrice | undefined
  readonly wanted: Estimate.UsageEstimate
}

type Account = Pick<
  RequestAccount.RequestAccount,
  "status" | "error" | "bill" | "provider" | "fallbackCount" | "fallbackReason" | "upstreamMs" | "denial" | "objects"
>

const emptyAccount = { error: undefined, bill: Billing.unbilled, fallbackCount: 0, denial: undefined } as const

const questionOf = (
  { provider, route, service, target }: Routing.Target,
  key: KeyRecord,
  running: number,
  startedAt: number
): Policy.PolicyRequest => ({
  route,
  provider,
  service: service && { name: service.service.name, linked: key.services },
  worksLater: Policy.worksLater(provider, target),
  facts: Facts.noFacts,
  requestBytes: 0,
  responseBytes: undefined,
  hourUtc: Math.floor(startedAt / 3_600_000) % 24,
  running,
  estimatedCostNanos: 0,
  unpricedModels: []
})

/** The gateway failed during the exchange: there may have been an answer, of which nothing is known. */
const unknownOutcome: Billing.ExchangeOutcome = {
  _tag: "Answered",
  observed: { reported: undefined, estimatedOutput: undefined },
  isComplete: false
}

const unreadableModelList = new GatewayError({
  code: "upstream_connection",
  message:
    "The upstream's answer is no list of models in JSON, so the gateway cannot tell which of them this key may use."
})

/** Parsing one of more bytes takes longer than looking whether it is wanted. */
const largeBodyBytes = 16_384

const hasNoStreamLimits = ({ max_sse_event_bytes, max_stream_duration_seconds }: KeyPolicy): boolean =>
  max_sse_event_bytes._tag === "Unlimited" && max_stream_duration_seconds._tag === "Unlimited"

const billingOutcomeOf = (passed: Forward.ForwardResult): Billing.ExchangeOutcome => {
  // what a guardrail keeps from the client was had all the same
  const status = passed.status ?? passed.withheldStatus
  if (status !== undefined) {
    return status >= 200 && status < 300
      ? { _tag: "Answered", observed: passed.observedUsage, isComplete: passed.isComplete }
      : { _tag: "Nothing" }
  }
  return passed.clientDisconnected && passed.requestSent ? { _tag: "Abandoned" } : { _tag: "Nothing" }
}

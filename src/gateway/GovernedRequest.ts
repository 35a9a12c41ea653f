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
import type { DenialRecord } from "../state/UsageRecord.ts"
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
  readonly schedule: (ms: number, run: () => void) => () => void
  readonly reportUnpriced: (model: string | undefined) => void
  readonly log: (message: Effect.Effect<void>) => void
  readonly logThrottle: LogThrottle
}

/** The sender of a request. `subject` comes from an identity that the request carries beside its key. */
export interface Sender {
  readonly key: KeyRecord
  readonly subject: string | undefined
}

/**
 * One request with a gateway key, in the order of its methods: begin, read, decide, admit, guard, send, settle. Each
 * method calls the next from a callback rather than an effect, which saves a quarter of the request's CPU time.
 *
 * The usage log gets exactly one record for the request, whatever happens.
 */
export class GovernedRequest {
  readonly #shared: SharedServices
  readonly #request: Request.Request
  readonly #target: Routing.Target
  readonly #sender: Sender
  readonly #span: Tracing.Span
  readonly #lifecycle: RequestLifecycle.RequestLifecycle
  readonly #lease: BodyLease
  readonly #requestHash: BodyHash

  #policyRequest: Policy.PolicyRequest
  #facts = Facts.noFacts
  #accounting: Estimate.Accounting
  /** Model layers apply once the body is read. */
  #effective: EffectivePolicy
  #runner: GuardrailRunner | undefined
  #readings: ReadonlyArray<MeterReading> = []
  /** The limits hold this reservation, or may hold it, until settlement. */
  #reservation: Reservation | undefined
  #billOf: ((outcome: Billing.ExchangeOutcome) => Billing.Bill) | undefined
  #fallback: Option.Option<Fallback.UpstreamCandidate> = Option.none()
  #provider: Routing.Target["provider"]
  #sentAt = 0
  /** The upstream may have received the request. */
  #requestSent = false
  #objectObserver: CreatedObjects | undefined
  #responseHash: BodyHash | undefined
  #exchange: { readonly account: Account; readonly headSent: boolean } | undefined
  #model: string | undefined
  #recorded = false

  /** Cancels the current step when the client disconnects; `undefined` while the current step cannot be cancelled. */
  #cancelStep: (() => void) | undefined
  /** The client disconnected during a step that cannot be cancelled: nothing is sent and the reservation is settled. */
  #clientGone = false

  constructor(
    shared: SharedServices,
    request: Request.Request,
    target: Routing.Target,
    sender: Sender,
    span: Tracing.Span,
    lifecycle: RequestLifecycle.RequestLifecycle
  ) {
    const { key } = sender
    const { control } = shared
    this.#shared = shared
    this.#request = request
    this.#target = target
    this.#sender = sender
    this.#span = span
    this.#lifecycle = lifecycle
    this.#lease = shared.admission.lease(key.id)
    this.#requestHash = new BodyHash(control.snapshot().bodyHashKey)
    this.#policyRequest = policyRequestOf(target, key, lifecycle.startRunning(key.id), request.startedAt)
    this.#accounting = target.accounting
    this.#effective = control.policyOf(key, target.route, [])
    this.#provider = target.provider
  }

  /** Starts the request and returns the disconnect handler. */
  run(): RequestLifecycle.OnDisconnect {
    try {
      this.#begin()
    } catch (defect) {
      this.#fail(defect)
    }
    return () => {
      if (this.#cancelStep === undefined) this.#clientGone = true
      else this.#cancelStep()
    }
  }

  // begin: checks that need no body

  #begin() {
    const refusal = Refusals.beforeBody(
      this.#request.wire.method,
      this.#target,
      this.#effective,
      this.#policyRequest,
      this.#modelLayers(),
      () => this.#fullMeter()
    )
    if (refusal === undefined) this.#read()
    else if ("meter" in refusal) this.#refuseByLimit({ _tag: "Refused", reading: refusal, wanted: 1 })
    else this.#refuseByPolicy(refusal)
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
    const endPhase = this.#span.startPhase("gateway.body")
    this.#cancelStep = this.#catching<void>(() => {
      endPhase()
      this.#endDisconnected()
    })
    const onceRead = <A>(step: (value: A) => void) =>
      this.#catching((value: A) => {
        // The client disconnected before the body was complete.
        if (this.#recorded) return
        this.#cancelStep = undefined
        endPhase()
        step(value)
      })
    if (routeId === "service" || routeId === "compat") {
      LenientBody.read(
        wire,
        service,
        options,
        (unsized) => this.#needsBody(unsized),
        onceRead((parse) => {
          const body = parse()
          if (Result.isFailure(body)) return this.#refuseBody(body.failure, options.limit)
          const charge = service && ServiceBilling.of(service, body.success)
          this.#decide(body.success, body.success.bytes?.length ?? 0, charge)
        })
      )
    } else {
      RequestBody.read(
        wire,
        options,
        onceRead((received) => {
          if (Result.isFailure(received)) return this.#refuseBody(received.failure, options.limit)
          const length = received.success?.length ?? 0
          if (length > largeBodyBytes) {
            // The meter may have filled up while the body arrived: skip parsing the body.
            const full = this.#fullMeter()
            if (full !== undefined) return this.#refuseByLimit({ _tag: "Refused", reading: full, wanted: 1 })
          }
          const body = RequestBody.parse(received.success, options)
          if (Result.isFailure(body)) this.#refuseBody(body.failure, options.limit)
          else this.#decide(body.success, length)
        })
      )
    }
  }

  #needsBody(unsized: boolean): boolean {
    const { guardrails } = this.#shared
    return (
      this.#target.service === undefined ||
      Policy.dependsOnBody(this.#effective.policy, unsized) ||
      this.#modelLayers().size > 0 ||
      guardrails.inspectsRequests(this.#effective.guardrails)
    )
  }

  // decide: policy and the estimated cost

  #decide(body: RequestBody.Body, receivedBytes: number, charge?: ServiceBilling.ServiceCharge) {
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
    const maxTokens = MaxTokens.of(target, facts, price, effective.policy, meters.all)
    const estimate = Estimate.estimateUsage(accounting, facts, price, maxTokens)
    const wanted = charge?.wanted ?? estimate
    this.#policyRequest = {
      ...this.#policyRequest,
      facts,
      requestBytes: receivedBytes,
      estimatedCostNanos: wanted.nanos,
      unpricedModels:
        effective.policy.unpriced_models === "refuse" && charge === undefined
          ? Estimate.unpricedModels(accounting, facts, prices)
          : []
    }
    const runner = guardrails.runnerFor(this.#request, target, key, subject, effective.guardrails, facts)
    const refusal = Refusals.afterBody(effective, this.#policyRequest, this.#modelLayers(), runner)
    if (refusal !== undefined) return this.#refuseByPolicy(refusal)
    this.#runner = Result.getOrUndefined(runner)
    const destination = destinations.find(target, this.#request.family, key)
    if (Result.isFailure(destination)) return this.#refuse(destination.failure)
    this.#fallback = Fallback.find(control, destinations, target, key, this.#policyRequest, body.bytes?.length ?? 0)
    const candidate = { destination: destination.success, config: target.config, policy: effective.policy }
    this.#admit(body, candidate, maxTokens, meters, { charge, estimate, price, wanted })
  }

  // admit: limits and object ownership

  #admit(
    body: RequestBody.Body,
    candidate: Fallback.UpstreamCandidate,
    maxTokens: MaxTokens.MaxTokens,
    meters: Meters.RequestMeters,
    cost: RequestCost
  ) {
    const endPhase = this.#span.startPhase("gateway.limits.admit")
    this.#shared.limits.admitUnsafe(
      this.#request.recordId,
      meters,
      cost.wanted,
      this.#catching((exit) => {
        endPhase()
        if (Exit.isFailure(exit)) return this.#refuseUnavailable(exit.cause)
        if (exit.value._tag === "Refused") return this.#refuseByLimit(exit.value, cost)
        this.#readings = exit.value.readings
        this.#reservation = exit.value.reservation
        this.#billOf = this.#billingOf(cost)
        this.#admitObjects(MaxTokens.writeTo(this.#target.routeId, body, maxTokens), candidate)
      })
    )
  }

  #billingOf({ charge, estimate, price }: RequestCost): (outcome: Billing.ExchangeOutcome) => Billing.Bill {
    return charge?.bill ?? ((outcome) => Billing.bill(this.#accounting, this.#facts, price, estimate, outcome))
  }

  #admitObjects(body: RequestBody.Body, candidate: Fallback.UpstreamCandidate) {
    const { objects } = this.#target
    const used = ObjectAccess.objectsUsed(objects, this.#facts.references)
    if (used.length === 0 && objects._tag !== "Unclear") return this.#guardBody(body, candidate)
    ObjectAccess.checkAccess(
      this.#objectAccess(),
      used,
      this.#catching((refusal) => (refusal === undefined ? this.#guardBody(body, candidate) : this.#refuse(refusal)))
    )
  }

  #objectAccess(): ObjectAccess.ObjectAccess {
    return { owners: this.#shared.owners, target: this.#target, key: this.#sender.key }
  }

  // guard: guardrails on the request body

  #guardBody(body: RequestBody.Body, candidate: Fallback.UpstreamCandidate) {
    const runner = this.#runner
    if (runner === undefined || body.bytes === null || body.bytes.length === 0) return this.#send(body, candidate)
    if (body.opaque) {
      const refusal = runner.refusalOfOpaqueBody()
      return refusal === undefined ? this.#send(body, candidate) : this.#refuse(refusal)
    }
    const endPhase = this.#span.startPhase("gateway.guardrails")
    runner.inspectRequest(
      body.bytes,
      this.#catching((bytes) => {
        endPhase()
        if (Result.isFailure(bytes)) this.#refuse(bytes.failure)
        else this.#send({ ...body, bytes: bytes.success }, candidate)
      })
    )
  }

  // send: the upstream exchange, with one fallback

  #send(body: RequestBody.Body, first: Fallback.UpstreamCandidate) {
    const { now } = this.#shared
    this.#sentAt = now()
    if (this.#facts.stream) this.#lifecycle.startStreaming()
    this.#forward("gateway.upstream", first, body, Option.isSome(this.#fallback), this.#sentAt, (response) => {
      const { result } = response
      if (!result.canFallBack || Option.isNone(this.#fallback)) return this.#conclude(response)
      const reason =
        result.withheldStatus === undefined ? (result.error?.code ?? "internal_error") : `http_${result.withheldStatus}`
      this.#provider = "upstream"
      this.#requestSent = false
      this.#forward("gateway.upstream.fallback", this.#fallback.value, body, false, now(), (second) =>
        this.#conclude(second, { from: this.#target.provider, to: "upstream", reason })
      )
    })
  }

  #forward(
    phase: string,
    candidate: Fallback.UpstreamCandidate,
    body: RequestBody.Body,
    mayFallBack: boolean,
    sentAt: number,
    then: (response: Forward.PendingResponse) => void
  ) {
    const { upstream } = this.#shared
    const { wire } = this.#request
    const inspector = this.#inspector()
    const optionsWith = (traceparent: string | undefined) =>
      this.#forwardOptions(candidate, body, mayFallBack, sentAt, inspector !== undefined, traceparent)
    if (this.#clientGone) return then(Forward.neverSent(wire, optionsWith(undefined)))
    const exchange = this.#span.startExchange(phase, candidate.destination.base.origin)
    const options = optionsWith(exchange.traceparent)
    this.#requestSent = true
    let ended = false
    const done = (response: Forward.PendingResponse) => {
      ended = true
      this.#cancelStep = undefined
      exchange.end(response.result.status ?? response.result.withheldStatus)
      then(response)
    }
    const onDefect = (defect: unknown) => this.#fail(defect)
    const cancel =
      inspector === undefined
        ? Forward.send(upstream, wire, options, done, onDefect)
        : BufferedResponse.send(upstream, wire, options, inspector, done, onDefect)
    // An exchange that fails at once has ended by now, and its fallback may have set a function of its own.
    if (!ended) this.#cancelStep = cancel
  }

  #forwardOptions(
    { config, destination, policy }: Fallback.UpstreamCandidate,
    body: RequestBody.Body,
    mayFallBack: boolean,
    sentAt: number,
    isInspected: boolean,
    traceparent: string | undefined
  ): Forward.ForwardOptions {
    const { control, schedule, now, owners } = this.#shared
    const { key } = this.#sender
    const request = this.#request
    const target = this.#target
    const provider = this.#provider
    const readsUsage = this.#accounting === "answer"
    this.#objectObserver = ObjectAccess.observerFor(
      target.objects,
      request.wire.method,
      (objects) => owners.rememberUnsafe(provider, objects, key, () => {}),
      this.#facts
    )
    this.#responseHash = new BodyHash(control.snapshot().bodyHashKey)
    const headers = RequestLifecycle.responseHeaders(request, this.#readings, sentAt)
    return {
      exchange: UpstreamRequest.toExchange({
        request,
        target,
        config,
        destination,
        key,
        body: body.streamed?.bytes ?? body.bytes,
        traceparent,
        readsResponse: readsUsage || isInspected || this.#objectObserver !== undefined
      }),
      credential: destination.credential,
      usageReading: readsUsage
        ? { _tag: "Tokens", family: target.family, hideUsage: body.hideUsage }
        : { _tag: "Blind" },
      limits: ofResponses(config, policy.max_response_body_bytes),
      hasTerminalEvent: target.routeId !== "service" && target.routeId !== "compat",
      renderErrorEvent: (error) => errorEvent(error, request.family, request.requestId),
      streamLimits: hasNoStreamLimits(policy)
        ? undefined
        : { maxSeconds: policy.max_stream_duration_seconds, maxEventBytes: policy.max_sse_event_bytes, schedule },
      addedHeaders: this.#runner === undefined ? headers : [...headers, ...this.#runner.responseHeaders()],
      onResponse: this.#lease.release,
      mayFallBack,
      requestBodyRefusal: body.streamed?.refusal,
      observer: this.#objectObserver,
      responseHash: this.#responseHash,
      rewriteHeaders: LocationHeaders.forClient(request.wire.target, target.target, destination.base),
      now
    }
  }

  #modelLayers() {
    return this.#shared.control.snapshot().layers.of.model
  }

  /** Removes models that the key may not use; `undefined` when the response needs no filter. */
  #modelFilter(): BufferedResponse.ResponseInspector | undefined {
    const isRestricted = this.#effective.policy.allowed_models._tag === "Allow" || this.#modelLayers().size > 0
    if (!isRestricted || this.#target.model !== undefined) return undefined
    return {
      lease: this.#lease,
      notJsonError: unreadableModelList,
      inspect: (text, done) => {
        const keep = listedIds(text)?.map((model) =>
          Refusals.isModelAllowed(this.#effective.policy, this.#modelLayers(), model)
        )
        done(Result.succeed(keep === undefined || keep.every((isKept) => isKept) ? text : filteredList(text, keep)))
      }
    }
  }

  /** Removes the objects of other owners; `undefined` when the response lists none. */
  #objectFilter(): BufferedResponse.ResponseInspector | undefined {
    const filter = ObjectAccess.listFilter(this.#objectAccess())
    if (filter === undefined) return undefined
    return {
      lease: this.#lease,
      notJsonError: ObjectAccess.unreadableList,
      inspect: (text, done) => filter(text, this.#catching(done))
    }
  }

  /** Buffers the response for guardrails or for filtering a list; `undefined` streams it. */
  #inspector(): BufferedResponse.ResponseInspector | undefined {
    const runner = this.#runner?.inspectsResponse === true ? this.#runner : undefined
    const filter = this.#target.routeId === "models" ? this.#modelFilter() : this.#objectFilter()
    if (runner === undefined) return filter
    const inspect: BufferedResponse.ResponseInspector["inspect"] = (text, done) => {
      const endPhase = this.#span.startPhase("gateway.guardrails")
      runner.inspectResponse(
        text,
        this.#catching((inspected) => {
          endPhase()
          if (filter === undefined || Result.isFailure(inspected)) done(inspected)
          else filter.inspect(inspected.success, done)
        })
      )
    }
    return { lease: this.#lease, inspect }
  }

  // settle: usage replaces the reservation, and the record is written

  #conclude({ finish, result }: Forward.PendingResponse, fallback?: UpstreamFallback) {
    const { now, owners } = this.#shared
    const objects = this.#objectObserver?.objects() ?? []
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
        this.#lifecycle.end({
          ...account,
          model: this.#model,
          streamed: this.#facts.stream,
          aborted: result.headSent && !result.isComplete,
          fallback,
          ...(result.firstByteAt === undefined ? {} : { firstByteMs: result.firstByteAt - this.#sentAt })
        })
      })
    // A client may use an object as soon as it reads the id, so owners are stored first.
    const unannounced = this.#objectObserver?.unannounced() ?? []
    if (unannounced.length === 0) end()
    else owners.rememberUnsafe(account.provider, unannounced, this.#sender.key, this.#catching<void>(end))
  }

  #settle(account: Account, then: () => void): void {
    if (this.#recorded) return
    const endPhase = this.#span.startPhase("gateway.settle")
    const record = RequestAccount.toRecord({
      ...account,
      request: this.#request,
      target: this.#target,
      key: this.#sender.key,
      facts: this.#facts,
      policy: this.#effective,
      guardrails: this.#runner?.executions,
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
      this.#catching<void>(() => {
        endPhase()
        this.#lease.release()
        then()
      })
    )
  }

  // early ends

  #refuse(error: GatewayError, denial?: DenialRecord) {
    const account: Account = { ...emptyAccount, status: error.status, error, provider: this.#target.provider, denial }
    this.#settle(account, () => {
      RequestLifecycle.sendRefusal(this.#request, error, this.#readings, this.#shared.now())
      this.#lifecycle.end({ ...account, model: this.#model, streamed: this.#facts.stream, aborted: false })
    })
  }

  #refuseByPolicy(refusal: Refusals.PolicyRefusal) {
    this.#refuse(new GatewayError(refusal), DenialRecords.ofRequest(refusal))
  }

  #refuseByLimit({ reading, wanted }: Extract<Admission, { readonly _tag: "Refused" }>, cost?: RequestCost) {
    const { meter, used } = reading
    this.#readings = [reading]
    const outputThatFits =
      cost === undefined || cost.charge !== undefined
        ? undefined
        : Estimate.outputTokensThatFit(this.#facts, cost.price, meter)
    this.#refuse(
      Meters.refusal(meter, used, wanted, this.#shared.now(), outputThatFits),
      DenialRecords.ofLimit(meter, this.#effective)
    )
  }

  #refuseUnavailable(cause: Cause.Cause<LimitsUnavailable>) {
    const unavailable = Result.getOrUndefined(Cause.findError(cause))
    this.#reservation = unavailable?.reservation
    const { log, logThrottle } = this.#shared
    const why = unavailable?.cause ?? Cause.squash(cause)
    log(
      logThrottle("limits", (suppressed) =>
        Effect.logWarning("limits cannot be checked", { cause: why, ...suppressed })
      )
    )
    this.#refuse(controlStateUnavailable)
  }

  /** A body that the client got wrong counts as a request, because reading it costs work. */
  #refuseBody(failure: GatewayError, limit: BodyLimit) {
    const byPolicy = failure.code === "request_body_too_large" && limit.setBy === "this key's policy"
    const denial = byPolicy ? DenialRecords.ofBody(this.#effective) : undefined
    if (failure.status >= 500) return this.#refuse(failure, denial)
    this.#shared.limits.admitUnsafe(
      this.#request.recordId,
      this.#meters(),
      Estimate.requestOnly,
      this.#catching((exit) => {
        this.#reservation = reservationOf(exit)
        this.#refuse(failure, denial)
      })
    )
  }

  /** The client disconnected before its body was complete: the record shows the attempt and bills nothing. */
  #endDisconnected() {
    this.#settle(
      { ...emptyAccount, status: RequestLifecycle.clientClosedStatus, provider: this.#target.provider },
      () => this.#lifecycle.end(RequestLifecycle.clientClosedOutcome)
    )
  }

  /** Handles a defect of the gateway. An exchange that has begun is still billed. */
  #fail(defect: unknown) {
    this.#lease.release()
    if (this.#recorded) return this.#lifecycle.fail(defect)
    const exchange = this.#exchange
    try {
      const account: Account = {
        ...emptyAccount,
        provider: this.#target.provider,
        bill: (this.#requestSent ? this.#billOf?.(unknownOutcome) : undefined) ?? Billing.unbilled,
        ...exchange?.account,
        status: exchange?.headSent === true ? exchange.account.status : internalError.status,
        error: internalError
      }
      this.#settle(account, () => this.#lifecycle.fail(defect))
    } catch (secondDefect) {
      this.#shared.log(Effect.logError("a failed request could not be recorded", { defect: secondDefect }))
      this.#lifecycle.fail(defect)
    }
  }

  /** Wraps a callback so that an exception becomes a failure of the request. */
  #catching<A>(step: (value: A) => void): (value: A) => void {
    return (value) => {
      try {
        step(value)
      } catch (defect) {
        this.#fail(defect)
      }
    }
  }

  #meters(): Meters.RequestMeters {
    const { control, metersFor, now } = this.#shared
    return metersFor(this.#effective, (effective) => control.limitScopes(this.#sender.key, effective), now())
  }

  #fullMeter(): MeterReading | undefined {
    return this.#shared.limits.fullMeter(() => this.#meters())
  }
}

interface RequestCost {
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

const policyRequestOf = (
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

const unknownOutcome: Billing.ExchangeOutcome = {
  _tag: "Answered",
  observed: { reported: undefined, estimatedOutput: undefined },
  isComplete: false
}

const unreadableModelList = new GatewayError({
  code: "upstream_connection",
  message:
    "The upstream's response is not a JSON list of models, so the gateway cannot filter it for this key. Contact the operator."
})

/** In bytes. Parsing a larger body costs more than checking the meters again. */
const largeBodyBytes = 16_384

const hasNoStreamLimits = ({ max_sse_event_bytes, max_stream_duration_seconds }: KeyPolicy): boolean =>
  max_sse_event_bytes._tag === "Unlimited" && max_stream_duration_seconds._tag === "Unlimited"

const billingOutcomeOf = (result: Forward.ForwardResult): Billing.ExchangeOutcome => {
  // A response that a guardrail withheld is still billed.
  const status = result.status ?? result.withheldStatus
  if (status !== undefined) {
    return status >= 200 && status < 300
      ? { _tag: "Answered", observed: result.observedUsage, isComplete: result.isComplete }
      : { _tag: "Nothing" }
  }
  return result.clientDisconnected && result.requestSent ? { _tag: "Abandoned" } : { _tag: "Nothing" }
}

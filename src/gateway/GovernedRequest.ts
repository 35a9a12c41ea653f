import { Option, Result } from "effect"
import * as Estimate from "../policy/Estimate.ts"
import * as Facts from "../policy/facts/Facts.ts"
import type { KeyPolicy } from "../policy/KeyPolicy.ts"
import * as Policy from "../policy/Policy.ts"
import type { ModelPrice } from "../policy/Price.ts"
import * as Refusals from "../policy/Refusals.ts"
import type * as Routing from "../policy/Routing.ts"
import { ofRequests, ofResponses } from "../policy/routes/BodyLimit.ts"
import { filteredList, listedIds } from "../policy/routes/UpstreamObjects.ts"
import type * as Meters from "../state/limits/Meters.ts"
import * as BufferedResponse from "./forward/BufferedResponse.ts"
import * as Fallback from "./forward/Fallback.ts"
import type * as Forward from "./forward/Forward.ts"
import * as GuardedResponse from "./forward/GuardedResponse.ts"
import * as LocationHeaders from "./forward/LocationHeaders.ts"
import * as MaxTokens from "./forward/MaxTokens.ts"
import type { CreatedObjects } from "./forward/objects/CreatedObjects.ts"
import * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import * as StreamedResponse from "./forward/StreamedResponse.ts"
import * as UpstreamRequest from "./forward/UpstreamRequest.ts"
import { errorEvent, GatewayError } from "./GatewayError.ts"
import type { GuardrailRunner } from "./GuardrailRunner.ts"
import * as KeyedRequest from "./KeyedRequest.ts"
import { BodyHash } from "./request/BodyHash.ts"
import * as LenientBody from "./request/LenientBody.ts"
import type * as Request from "./request/Request.ts"
import * as RequestBody from "./request/RequestBody.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import { operationOf } from "./TextRoutes.ts"
import type { ModelRequest } from "./telemetry/ModelCall.ts"
import type { UpstreamFallback } from "./telemetry/RequestOutcome.ts"
import type * as Tracing from "./telemetry/Tracing.ts"
import * as Billing from "./usage/Billing.ts"
import * as DenialRecords from "./usage/DenialRecords.ts"
import * as RequestAccount from "./usage/RequestAccount.ts"
import * as ServiceBilling from "./usage/ServiceBilling.ts"

export interface GovernedServices extends KeyedRequest.KeyedServices {
  readonly schedule: (ms: number, run: () => void) => () => void
  readonly reportUnpriced: (model: string | undefined) => void
}

/** The sender of a request. `subject` is the verified user, if the request also carries a user identity. */
export interface Sender {
  readonly key: KeyRecord
  readonly subject: string | undefined
}

/** Handles one request with a gateway key. The methods are listed in the order in which they run. */
export class GovernedRequest extends KeyedRequest.KeyedRequest<GovernedServices, Routing.Target> {
  readonly #subject: string | undefined
  readonly #requestHash: BodyHash

  #policyRequest: Policy.PolicyRequest
  #accounting: Estimate.Accounting
  #runner: GuardrailRunner | undefined
  #cost: RequestCost | undefined
  #fallback: Option.Option<Fallback.UpstreamCandidate> = Option.none()
  /** The start of the first upstream attempt. The recorded `upstream_ms` therefore includes a fallback attempt. */
  #sentAt = 0
  /** True if the upstream may have received the request of the current attempt. */
  #maybeSent = false
  /** The latest exchange with an upstream. */
  #exchange: Tracing.Exchange | undefined
  #objectObserver: CreatedObjects | undefined
  #responseHash: BodyHash | undefined

  constructor(
    services: GovernedServices,
    request: Request.Request,
    target: Routing.Target,
    { key, subject }: Sender,
    span: Tracing.Span,
    lifecycle: RequestLifecycle.RequestLifecycle
  ) {
    super(services, request, target, key, span, lifecycle)
    this.#subject = subject
    this.#requestHash = new BodyHash(services.control.snapshot().bodyHashKey)
    const running = lifecycle.startRunning(key.id)
    this.#policyRequest = policyRequestOf(target, key, running, request.startedAt)
    this.#accounting = target.accounting
  }

  // Step 1: checks that need no body.

  protected begin() {
    const refusal = Refusals.beforeBody(
      this.request.wire.method,
      this.target,
      this.effective,
      this.#policyRequest,
      this.#modelLayers(),
      () => this.fullMeter()
    )
    if (refusal === undefined) this.#read()
    else if ("meter" in refusal) this.refuseByFullMeter(refusal)
    else this.refuseByPolicy(refusal)
  }

  // Step 2: read the body.

  #read() {
    const { accounting, config, routeId, service, isUsageOptIn } = this.target
    const { wire } = this.request
    const { policy } = this.effective
    const options: RequestBody.ReadOptions = {
      routeId,
      limit: ofRequests(config, policy.max_request_body_bytes),
      withinMs: config.timeoutMs,
      lease: this.lease,
      managed: config.mode === "managed_by_gateway",
      readsParameters: this.span.isRecorded,
      requestsUsage: accounting === "answer" && isUsageOptIn,
      hash: this.#requestHash
    }
    if (routeId === "service" || routeId === "compat") {
      LenientBody.read(
        wire,
        service,
        options,
        (unsized) => this.#needsBody(unsized),
        this.onceRead((parse) => {
          const body = parse()
          if (Result.isFailure(body)) return this.refuseBody(body.failure, options.limit)
          const charge = service && ServiceBilling.of(service, body.success)
          this.#decide(body.success, body.success.bytes?.length ?? 0, charge)
        })
      )
    } else {
      RequestBody.read(
        wire,
        options,
        this.onceRead((received) => {
          if (Result.isFailure(received)) return this.refuseBody(received.failure, options.limit)
          const length = received.success?.length ?? 0
          if (length > largeBodyBytes) {
            // Other requests may have used up a limit meanwhile. Parsing the large body would be wasted work.
            const full = this.fullMeter()
            if (full !== undefined) return this.refuseByFullMeter(full)
          }
          const body = RequestBody.parse(received.success, options)
          if (Result.isFailure(body)) this.refuseBody(body.failure, options.limit)
          else this.#decide(body.success, length)
        })
      )
    }
  }

  #needsBody(unsized: boolean): boolean {
    const { guardrails } = this.services
    return (
      this.target.service === undefined ||
      Policy.dependsOnBody(this.effective.policy, unsized) ||
      this.#modelLayers().size > 0 ||
      guardrails.inspectsRequests(this.effective.guardrails)
    )
  }

  // Step 3: check the policy, estimate the cost, reserve limits, and check the owners of named upstream objects.

  #decide(body: RequestBody.Body, receivedBytes: number, charge?: ServiceBilling.ServiceCharge) {
    const { control, destinations, guardrails } = this.services
    const { key, target } = this
    const facts = Facts.withTarget(body.facts, target)
    const effective = control.policyOf(key, target.route, Facts.allModels(facts))
    const accounting = Estimate.accountingWithBody(target.accounting, facts)
    this.facts = facts
    this.effective = effective
    this.#accounting = accounting
    const { prices } = control.snapshot()
    const price = Estimate.priceOfRequest(facts, prices, effective.policy.unpriced_models)
    const meters = this.meters()
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
    const runner = guardrails.runnerFor(
      { request: this.request, target, key, subject: this.#subject, facts, span: this.span },
      effective.guardrails
    )
    const refusal = Refusals.afterBody(effective, this.#policyRequest, this.#modelLayers(), runner)
    if (refusal !== undefined) return this.refuseByPolicy(refusal)
    this.#runner = Result.getOrUndefined(runner)
    const destination = destinations.find(target, this.request.family, key)
    if (Result.isFailure(destination)) return this.refuse(destination.failure)
    this.#fallback = Fallback.find(control, destinations, target, key, this.#policyRequest, body.bytes?.length ?? 0)
    this.#cost = { charge, estimate, price }
    const candidate = { destination: destination.success, config: target.config, policy: effective.policy }
    this.admit(meters, wanted, () => {
      const bounded = MaxTokens.writeTo(target.routeId, body, maxTokens)
      this.admitObjects(facts.references, () => this.#guardBody(bounded, candidate))
    })
  }

  // Step 4: run the guardrails on the request body.

  #guardBody(body: RequestBody.Body, candidate: Fallback.UpstreamCandidate) {
    const runner = this.#runner
    if (runner === undefined || body.bytes === null || body.bytes.length === 0) return this.#send(body, candidate)
    if (body.opaque) {
      const refusal = runner.refusalOfOpaqueBody()
      return refusal === undefined ? this.#send(body, candidate) : this.refuse(refusal)
    }
    runner.inspectRequest(
      body.bytes,
      this.catching((bytes) => {
        if (Result.isFailure(bytes)) this.refuse(bytes.failure)
        else this.#send({ ...body, bytes: bytes.success }, candidate)
      })
    )
  }

  // Step 5: send the request to the upstream, and at most once more to a fallback upstream.

  #send(body: RequestBody.Body, first: Fallback.UpstreamCandidate) {
    const { now } = this.services
    this.#sentAt = now()
    if (this.facts.stream) this.lifecycle.startStreaming()
    this.#forward(first, body, Option.isSome(this.#fallback), this.#sentAt, (response) => {
      const { result } = response
      if (!result.canFallBack || Option.isNone(this.#fallback)) return this.#conclude(response)
      const reason =
        result.withheldStatus === undefined ? (result.error?.code ?? "internal_error") : `http_${result.withheldStatus}`
      this.provider = "upstream"
      this.#maybeSent = false
      this.#forward(this.#fallback.value, body, false, now(), (second) =>
        this.#conclude(second, { from: this.target.provider, to: "upstream", reason })
      )
    })
  }

  #forward(
    candidate: Fallback.UpstreamCandidate,
    body: RequestBody.Body,
    mayFallBack: boolean,
    headersAt: number,
    then: (response: Forward.PendingResponse) => void
  ) {
    const { upstream } = this.services
    const { wire } = this.request
    const inspector = this.#inspector()
    const onDefect = (defect: unknown) => this.fail(defect)
    const streamFilter =
      this.#runner?.inspectsResponse === true
        ? this.#runner.streamFilter({ lease: this.lease, schedule: this.services.schedule, onDefect })
        : undefined
    const readsResponse = inspector !== undefined
    const optionsWith = (exchange: Tracing.Exchange | undefined) =>
      this.#forwardOptions(candidate, body, mayFallBack, headersAt, readsResponse, streamFilter, exchange)
    if (this.clientGone) return then(StreamedResponse.neverSent(wire, optionsWith(undefined)))
    const exchange = this.span.startExchange({
      base: candidate.destination.base,
      provider: this.provider,
      model: () => this.#modelRequest(body)
    })
    this.#exchange = exchange
    const options = optionsWith(exchange)
    this.#maybeSent = true
    let ended = false
    const done = (response: Forward.PendingResponse) => {
      ended = true
      this.cancelStep = undefined
      exchange.end(response.result)
      then(response)
    }
    const cancel =
      inspector === undefined
        ? StreamedResponse.send(upstream, wire, options, done, onDefect)
        : streamFilter === undefined
          ? BufferedResponse.send(upstream, wire, options, inspector, done, onDefect)
          : GuardedResponse.send(upstream, wire, options, inspector, done, onDefect)
    // If the first attempt failed synchronously, the fallback attempt may already have set its own `cancelStep`.
    if (!ended) this.cancelStep = cancel
  }

  #forwardOptions(
    { config, destination, policy }: Fallback.UpstreamCandidate,
    body: RequestBody.Body,
    mayFallBack: boolean,
    headersAt: number,
    isInspected: boolean,
    streamFilter: Forward.ForwardOptions["streamFilter"],
    tracing: Tracing.Exchange | undefined
  ): Forward.ForwardOptions {
    const { control, schedule, now } = this.services
    const { key, request, target } = this
    const readsUsage = this.#accounting === "answer"
    this.#objectObserver = this.observeCreatedObjects(this.facts)
    this.#responseHash = new BodyHash(control.snapshot().bodyHashKey)
    const headers = RequestLifecycle.responseHeaders(request, this.readings, headersAt)
    return {
      exchange: UpstreamRequest.toExchange({
        request,
        target,
        config,
        destination,
        key,
        body: body.streamed?.bytes ?? body.bytes,
        traceparent: tracing?.traceparent,
        readsResponse: readsUsage || isInspected || this.#objectObserver !== undefined
      }),
      credential: destination.credential,
      usageReading: readsUsage
        ? { _tag: "Tokens", family: target.family, hideUsage: body.hideUsage, reader: tracing?.reader }
        : { _tag: "Blind" },
      limits: ofResponses(config, policy.max_response_body_bytes),
      hasTerminalEvent: target.routeId !== "service" && target.routeId !== "compat",
      renderErrorEvent: (error) => errorEvent(error, request.family, request.requestId),
      streamLimits: hasNoStreamLimits(policy)
        ? undefined
        : { maxSeconds: policy.max_stream_duration_seconds, maxEventBytes: policy.max_sse_event_bytes, schedule },
      addedHeaders: this.#runner === undefined ? headers : [...headers, ...this.#runner.responseHeaders()],
      onResponse: this.lease.release,
      mayFallBack,
      requestBodyRefusal: body.streamed?.refusal,
      observer: this.#objectObserver,
      streamFilter,
      responseHash: this.#responseHash,
      rewriteHeaders: LocationHeaders.forClient(request.wire.target, target.target, destination.base),
      now
    }
  }

  /** Returns what is asked of a model, for tracing. `undefined` if the route calls no model. */
  #modelRequest({ parameters }: RequestBody.Body): ModelRequest | undefined {
    const { facts, request, target } = this
    const operation = request.wire.method === "POST" ? operationOf(target) : undefined
    const model = RequestAccount.recordableName(facts.models[0])
    return operation && { operation, family: target.family, model, streams: facts.stream, parameters }
  }

  /**
   * Returns a filter that removes models that the key may not use from a model list. `undefined` if none is needed, and in
   * direct mode, which reads no response.
   */
  #modelFilter(): BufferedResponse.ResponseInspector | undefined {
    if (this.target.config.mode !== "managed_by_gateway") return undefined
    const isRestricted = this.effective.policy.allowed_models._tag === "Allow" || this.#modelLayers().size > 0
    if (!isRestricted || this.target.model !== undefined) return undefined
    return {
      lease: this.lease,
      notJsonError: unreadableModelList,
      inspect: (text, done) => {
        const keep = listedIds(text)?.map((model) =>
          Refusals.isModelAllowed(this.effective.policy, this.#modelLayers(), model)
        )
        done(Result.succeed(keep === undefined || keep.every((isKept) => isKept) ? text : filteredList(text, keep)))
      }
    }
  }

  /** Returns what must read the response before the client does. An event stream passes through its own filter instead. */
  #inspector(): BufferedResponse.ResponseInspector | undefined {
    const runner = this.#runner?.inspectsResponse === true ? this.#runner : undefined
    const filter = this.target.routeId === "models" ? this.#modelFilter() : this.objectFilter()
    if (runner === undefined) return filter
    const inspect: BufferedResponse.ResponseInspector["inspect"] = (text, done) => {
      this.#exchange?.received()
      runner.inspectResponse(
        text,
        this.catching((inspected) => {
          if (filter === undefined || Result.isFailure(inspected)) done(inspected)
          else filter.inspect(inspected.success, done)
        })
      )
    }
    return { lease: this.lease, inspect, acceptsLines: this.target.routeId === "message-batch-results" }
  }

  // Step 6: bill the request.

  #conclude({ finish, result }: Forward.PendingResponse, fallback?: UpstreamFallback) {
    const { now, reportUnpriced } = this.services
    this.#runner?.endStream()
    const exchange = {
      status: result.status ?? result.error?.status ?? RequestLifecycle.clientClosedStatus,
      error: result.error,
      bill: this.#bill(billingOutcomeOf(result)),
      provider: this.provider,
      fallbackCount: fallback === undefined ? 0 : 1,
      fallbackReason: fallback?.reason,
      upstreamMs: result.requestSent ? result.endedAt - this.#sentAt : undefined,
      firstByteAt: result.firstByteAt,
      denial:
        result.cutBy === undefined
          ? undefined
          : DenialRecords.ofResponse(result.cutBy, this.effective, this.target.config)
    }
    this.settleExchange(exchange, result.headSent, this.#objectObserver, (account, model) => {
      if (account.bill.costSource === "route_default" && account.status < 400) reportUnpriced(model)
      const outcome = {
        ...account,
        model,
        streamed: this.facts.stream,
        aborted: result.headSent && !result.isComplete,
        fallback,
        ...(result.firstByteAt === undefined ? {} : { firstByteMs: result.firstByteAt - this.#sentAt })
      }
      if (result.error !== undefined && !result.headSent) {
        RequestLifecycle.sendRefusal(this.request, result.error, this.readings, now())
        this.end(outcome)
      } else if (finish()) this.end(outcome)
      else this.request.wire.onFlushed(() => this.end(outcome), this.target.config.timeoutMs)
    })
  }

  #bill(outcome: Billing.ExchangeOutcome): Billing.Bill {
    if (this.#cost === undefined) return Billing.unbilled
    const { charge, estimate, price } = this.#cost
    return charge?.bill(outcome) ?? Billing.bill(this.#accounting, this.facts, price, estimate, outcome)
  }

  protected override billOfDefect(): Billing.Bill {
    return this.#maybeSent ? this.#bill(unknownOutcome) : Billing.unbilled
  }

  protected override recordDetails() {
    return {
      subject: this.#subject,
      guardrails: this.#runner?.executions,
      requestHash: this.#requestHash.digest(),
      responseHash: this.#responseHash?.digest()
    }
  }

  protected override outputTokensThatFit(meter: Meters.Meter): number | undefined {
    if (this.#cost === undefined || this.#cost.charge !== undefined) return undefined
    return Estimate.outputTokensThatFit(this.facts, this.#cost.price, meter)
  }

  #modelLayers() {
    return this.services.control.snapshot().layers.of.model
  }
}

interface RequestCost {
  /** The price of a call to a registered service. Such a call is not priced by tokens. */
  readonly charge: ServiceBilling.ServiceCharge | undefined
  readonly estimate: Estimate.ReservedUsage
  /** `undefined` if the model has no price. */
  readonly price: ModelPrice | undefined
}

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
    "The upstream's response is not a JSON list of models, so the gateway cannot filter it for this key. Ask an operator to check the upstream."
})

/** In bytes. Parsing a longer body takes longer than checking the limits again. */
const largeBodyBytes = 16_384

const hasNoStreamLimits = ({ max_sse_event_bytes, max_stream_duration_seconds }: KeyPolicy): boolean =>
  max_sse_event_bytes._tag === "Unlimited" && max_stream_duration_seconds._tag === "Unlimited"

const billingOutcomeOf = (result: Forward.ForwardResult): Billing.ExchangeOutcome => {
  // A response is billed even if a guardrail withheld it from the client.
  const status = result.status ?? result.withheldStatus
  if (status !== undefined) {
    return status >= 200 && status < 300
      ? { _tag: "Answered", observed: result.observedUsage, isComplete: result.isComplete }
      : { _tag: "Nothing" }
  }
  return result.clientDisconnected && result.requestSent ? { _tag: "Abandoned" } : { _tag: "Nothing" }
}

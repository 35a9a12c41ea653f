import { Cause, Effect, Exit, Result } from "effect"
import type { EffectivePolicy } from "../policy/EffectivePolicy.ts"
import * as Estimate from "../policy/Estimate.ts"
import * as Facts from "../policy/facts/Facts.ts"
import * as NamedModels from "../policy/facts/NamedModels.ts"
import * as Query from "../policy/facts/Query.ts"
import type { ClientKind } from "../policy/facts/ResponseHeaders.ts"
import * as Policy from "../policy/Policy.ts"
import { byPolicy } from "../policy/Refusals.ts"
import type { WildcardTarget } from "../policy/Routing.ts"
import { type BodyLimit, ofRequests } from "../policy/routes/BodyLimit.ts"
import * as CompatPaths from "../policy/routes/CompatPaths.ts"
import type { UpstreamObject } from "../policy/routes/UpstreamObjects.ts"
import type { BodyLease } from "../services/BodyLeases.ts"
import type { LogThrottle } from "../services/LogThrottle.ts"
import type { Upstream } from "../services/Upstream.ts"
import type { DenialRecord } from "../state/UsageRecord.ts"
import type { Destination, Destinations } from "./forward/Destination.ts"
import * as ObjectAccess from "./forward/ObjectAccess.ts"
import type { ObjectOwners } from "./forward/ObjectOwners.ts"
import * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import * as StreamedRequest from "./forward/StreamedRequest.ts"
import { controlStateUnavailable, GatewayError, internalError } from "./GatewayError.ts"
import type { MeterReading } from "./limits/Meters.ts"
import * as Meters from "./limits/Meters.ts"
import {
  type Admission,
  type LimitsUnavailable,
  type Reservation,
  reservationOf,
  type UsageLimits
} from "./limits/UsageLimits.ts"
import type { RequestGuardrails } from "./RequestGuardrails.ts"
import type { BodyAdmission } from "./request/BodyAdmission.ts"
import type * as Request from "./request/Request.ts"
import type { ControlState } from "./snapshot/ControlState.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import type * as Tracing from "./telemetry/Tracing.ts"
import * as Billing from "./usage/Billing.ts"
import * as DenialRecords from "./usage/DenialRecords.ts"
import * as RequestAccount from "./usage/RequestAccount.ts"
import type { UsageLog } from "./usage/UsageLog.ts"
import * as WildcardBody from "./WildcardBody.ts"

export interface WildcardServices {
  readonly admission: BodyAdmission["Service"]
  readonly control: ControlState["Service"]
  readonly destinations: Destinations["Service"]
  readonly guardrails: RequestGuardrails["Service"]
  readonly limits: UsageLimits["Service"]
  readonly owners: ObjectOwners["Service"]
  readonly upstream: Upstream["Service"]
  readonly usageLog: UsageLog["Service"]
  readonly metersFor: ReturnType<typeof Meters.memoizedMeters>
  readonly requestCounters: ReturnType<typeof Meters.requestCountersOnly>
  readonly now: () => number
  readonly log: (message: Effect.Effect<void>) => void
  readonly logThrottle: LogThrottle
}

type RecordedOutcome = StreamedRequest.ExchangeOutcome & { readonly objects?: ReadonlyArray<UpstreamObject> }

/**
 * One wildcard request with a gateway key. It works like `GovernedRequest`, in the order of its methods: begin, read,
 * admit, send, settle.
 */
export class KeyedWildcardRequest {
  readonly #services: WildcardServices
  readonly #request: Request.Request
  readonly #target: WildcardTarget
  readonly #key: KeyRecord
  readonly #span: Tracing.Span
  readonly #lifecycle: RequestLifecycle.RequestLifecycle
  readonly #effective: EffectivePolicy
  readonly #lease: BodyLease

  #readings: ReadonlyArray<MeterReading> = []
  #reservation: Reservation | undefined
  #exchange: StreamedRequest.ExchangeOutcome | undefined
  #recorded = false

  #cancelStep: (() => void) | undefined
  #clientGone = false

  constructor(
    services: WildcardServices,
    request: Request.Request,
    target: WildcardTarget,
    key: KeyRecord,
    span: Tracing.Span,
    lifecycle: RequestLifecycle.RequestLifecycle
  ) {
    this.#services = services
    this.#request = request
    this.#target = target
    this.#key = key
    this.#span = span
    this.#lifecycle = lifecycle
    this.#effective = services.control.policyOf(key, target.route, [])
    this.#lease = services.admission.lease(key.id)
  }

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

  // begin

  #begin() {
    const { destinations, limits } = this.#services
    const request = this.#request
    const target = this.#target
    const running = this.#lifecycle.startRunning(this.#key.id)
    const denial = byPolicy(this.#effective, policyRequestOf(request, target, running, this.#services.now()))
    if (denial !== undefined) return this.#refuse(new GatewayError(denial), DenialRecords.ofRequest(denial))
    const unread = this.#unreadBodyDenial()
    if (unread !== undefined) {
      return this.#refuse(new GatewayError(unread), DenialRecords.ofUnreadBody(unread, this.#effective))
    }
    const guardrailRefusal = this.#guardrailRefusal()
    if (guardrailRefusal !== undefined) return this.#refuse(guardrailRefusal)
    const destination = destinations.find(target, request.family, this.#key)
    if (Result.isFailure(destination)) return this.#refuse(destination.failure)
    const reader = WildcardBody.readerOf(request, target)
    if (reader === undefined) return this.#admit(destination.success, undefined)
    const full = limits.fullMeter(() => this.#meters())
    if (full !== undefined) this.#refuseByLimit({ _tag: "Refused", reading: full, wanted: 1 })
    else this.#read(reader, destination.success)
  }

  #unreadBodyDenial() {
    if (this.#target.settings.body_policies === "skip" || !mayConcernPolicy(this.#request, this.#target))
      return undefined
    const { layers } = this.#services.control.snapshot()
    return Policy.unreadBodyDenial(this.#effective.policy, layers.of.model.size > 0)
  }

  /** The error when the key's policy selects guardrails, because guardrails cannot inspect this traffic. */
  #guardrailRefusal(): GatewayError | undefined {
    if (this.#target.settings.guardrails === "skip") return undefined
    const selected = this.#services.guardrails.defaultSelection(this.#effective.guardrails)
    if (Result.isFailure(selected)) return new GatewayError(selected.failure)
    const [first] = selected.success
    return first && guardrailCannotInspect(first.definition.name)
  }

  // read: the body, for its object references

  #read(reader: WildcardBody.BodyReader, destination: Destination) {
    const { config } = this.#target
    const { wire } = this.#request
    const limit = ofRequests(config, this.#effective.policy.max_request_body_bytes)
    this.#cancelStep = this.#catching<void>(() => this.#endDisconnected())
    reader.read(
      wire,
      { lease: this.#lease, limit, withinMs: config.timeoutMs },
      this.#catching((received) => {
        if (this.#recorded) return
        this.#cancelStep = undefined
        const body = Result.flatMap(received, (bytes) => reader.parse(wire, bytes))
        if (Result.isSuccess(body)) this.#admit(destination, body.success)
        else this.#refuseBody(body.failure, limit)
      })
    )
  }

  // admit

  #admit(destination: Destination, body: WildcardBody.ReadBody | undefined) {
    this.#services.limits.admitUnsafe(
      this.#request.recordId,
      this.#meters(),
      Estimate.requestOnly,
      this.#catching((exit) => {
        if (Exit.isFailure(exit)) return this.#refuseUnavailable(exit.cause)
        if (exit.value._tag === "Refused") return this.#refuseByLimit(exit.value)
        this.#readings = exit.value.readings
        this.#reservation = exit.value.reservation
        this.#admitObjects(destination, body)
      })
    )
  }

  #admitObjects(destination: Destination, body: WildcardBody.ReadBody | undefined) {
    ObjectAccess.checkAccess(
      this.#objectAccess(),
      ObjectAccess.objectsUsed(this.#target.objects, body?.references ?? []),
      this.#catching((refusal) => (refusal === undefined ? this.#send(destination, body) : this.#refuse(refusal)))
    )
  }

  #objectAccess(): ObjectAccess.ObjectAccess {
    return { owners: this.#services.owners, target: this.#target, key: this.#key }
  }

  // send

  #send(destination: Destination, body: WildcardBody.ReadBody | undefined) {
    if (this.#clientGone) return this.#endDisconnected()
    const { now, owners, upstream } = this.#services
    const request = this.#request
    const target = this.#target
    const observer = ObjectAccess.observerFor(
      target.objects,
      request.wire.method,
      (objects) => owners.rememberUnsafe(target.provider, objects, this.#key, () => {}),
      body?.creation
    )
    const listFilter = ObjectAccess.listFilter(this.#objectAccess())
    const options: StreamedRequest.StreamedRequestOptions = {
      request,
      target,
      key: this.#key,
      destination,
      appliedPolicy: { policy: this.#effective.policy, readings: this.#readings },
      clientKind: clientKindOf(target),
      bufferedBody: body?.bytes,
      onResponse: this.#lease.release,
      observer,
      inspector: listFilter && {
        lease: this.#lease,
        notJsonError: ObjectAccess.unreadableList,
        inspect: (text, done) => listFilter(text, this.#catching(done))
      },
      settle: (outcome, then) => {
        this.#exchange = outcome
        const objects = observer?.objects() ?? []
        const end = () => this.#settle(objects.length === 0 ? outcome : { ...outcome, objects }, undefined, then)
        // A client may use an object as soon as it reads the id, so owners are stored first.
        const unannounced = observer?.unannounced() ?? []
        if (unannounced.length === 0) end()
        else owners.rememberUnsafe(target.provider, unannounced, this.#key, this.#catching<void>(end))
      }
    }
    const fail = (defect: unknown) => this.#fail(defect)
    this.#cancelStep = StreamedRequest.run(upstream, options, now, this.#span, { ...this.#lifecycle, fail })
  }

  // settle

  #settle(outcome: RecordedOutcome, denial: DenialRecord | undefined, then: () => void) {
    if (this.#recorded) return
    this.#lease.release()
    const record = RequestAccount.toRecord({
      ...emptyAccount,
      ...outcome,
      request: this.#request,
      target: this.#target,
      key: this.#key,
      denial,
      policy: this.#effective,
      endedAt: this.#services.now()
    })
    this.#recorded = true
    const { usageLog } = this.#services
    usageLog.settleUnsafe(this.#reservation, Billing.unbilled.settled, record, this.#catching<void>(then))
  }

  // early ends

  #refuse(error: GatewayError, denial?: DenialRecord) {
    this.#settle({ status: error.status, error }, denial, () => {
      RequestLifecycle.sendRefusal(this.#request, error, this.#readings, this.#services.now())
      this.#lifecycle.end({ status: error.status, error, streamed: false, aborted: false, bill: Billing.unbilled })
    })
  }

  #refuseByLimit({ reading, wanted }: Extract<Admission, { readonly _tag: "Refused" }>) {
    const { meter, used } = reading
    this.#readings = [reading]
    this.#refuse(
      Meters.refusal(meter, used, wanted, this.#services.now()),
      DenialRecords.ofLimit(meter, this.#effective)
    )
  }

  #refuseUnavailable(cause: Cause.Cause<LimitsUnavailable>) {
    const unavailable = Result.getOrUndefined(Cause.findError(cause))
    this.#reservation = unavailable?.reservation
    const { log, logThrottle } = this.#services
    const why = unavailable?.cause ?? Cause.squash(cause)
    log(
      logThrottle("limits", (suppressed) =>
        Effect.logWarning("limits cannot be checked", { cause: why, ...suppressed })
      )
    )
    this.#refuse(controlStateUnavailable)
  }

  #refuseBody(failure: GatewayError, limit: BodyLimit) {
    const byPolicy = failure.code === "request_body_too_large" && limit.setBy === "this key's policy"
    const denial = byPolicy ? DenialRecords.ofBody(this.#effective) : undefined
    if (failure.status >= 500) return this.#refuse(failure, denial)
    this.#services.limits.admitUnsafe(
      this.#request.recordId,
      this.#meters(),
      Estimate.requestOnly,
      this.#catching((exit) => {
        this.#reservation = reservationOf(exit)
        this.#refuse(failure, denial)
      })
    )
  }

  #endDisconnected() {
    this.#settle({ status: RequestLifecycle.clientClosedStatus, error: undefined }, undefined, () =>
      this.#lifecycle.end(RequestLifecycle.clientClosedOutcome)
    )
  }

  #fail(defect: unknown) {
    this.#lease.release()
    if (this.#recorded) return this.#lifecycle.fail(defect)
    const exchange = this.#exchange
    const outcome: RecordedOutcome = {
      ...exchange,
      status: exchange?.headSent === true ? exchange.status : internalError.status,
      error: internalError
    }
    try {
      this.#settle(outcome, undefined, () => this.#lifecycle.fail(defect))
    } catch (secondDefect) {
      this.#services.log(Effect.logError("a failed request could not be recorded", { defect: secondDefect }))
      this.#lifecycle.fail(defect)
    }
  }

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
    const { control, metersFor, now, requestCounters } = this.#services
    return requestCounters(metersFor(this.#effective, (effective) => control.limitScopes(this.#key, effective), now()))
  }
}

export const clientKindOf = ({ settings }: WildcardTarget): ClientKind =>
  settings.ui_exposure === "disabled" ? "program" : "browser"

const policyRequestOf = (
  request: Request.Request,
  target: WildcardTarget,
  running: number,
  now: number
): Policy.PolicyRequest => ({
  route: target.route,
  provider: target.provider,
  worksLater: worksLater(request, target),
  facts: Facts.noFacts,
  requestBytes: 0,
  responseBytes: undefined,
  hourUtc: new Date(now).getUTCHours(),
  running,
  estimatedCostNanos: 0,
  unpricedModels: []
})

/**
 * Whether policy might need the body: the request has one, its query repeats deciding members, its path names a model,
 * or its path starts work (such as resuming a job).
 */
const mayConcernPolicy = ({ wire }: Request.Request, { target }: WildcardTarget): boolean => {
  if (StreamedRequest.hasBody(wire) || Query.decidingParameter(target, Facts.decidingMembers) !== undefined) return true
  if (wire.method !== "POST") return false
  const { models, unjudgedMember } = NamedModels.namedInPath(target)
  return models.length > 0 || unjudgedMember !== undefined || CompatPaths.workOf(target) === "later"
}

/**
 * Whether the request starts upstream work whose models and tokens the gateway cannot see, such as a batch of an
 * uploaded file. That work would bypass the limits of the governed routes.
 */
const worksLater = ({ wire }: Request.Request, { settings, target }: WildcardTarget): boolean =>
  settings.body_policies !== "skip" && wire.method === "POST" && CompatPaths.workOf(target) === "later"

const guardrailCannotInspect = (guardrail: string): GatewayError =>
  new GatewayError({
    code: "policy_denied",
    message: `The guardrail ${guardrail} of this key cannot inspect requests on this path. Use a route that the gateway reads, or ask an operator to set guardrails to skip in the passthrough settings.`
  })

const emptyAccount = {
  facts: Facts.noFacts,
  guardrails: undefined,
  bill: Billing.unbilled,
  provider: "upstream",
  fallbackCount: 0
} as const

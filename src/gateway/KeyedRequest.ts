import { Cause, Clock, Effect, Exit, type Fiber, Result } from "effect"
import type { EffectivePolicy } from "../policy/EffectivePolicy.ts"
import * as Estimate from "../policy/Estimate.ts"
import * as Facts from "../policy/facts/Facts.ts"
import type * as Refusals from "../policy/Refusals.ts"
import type { RoutedRequest } from "../policy/Routing.ts"
import type { BodyLimit } from "../policy/routes/BodyLimit.ts"
import type { CreationRequest } from "../policy/routes/UpstreamObjects.ts"
import type { BodyLease } from "../services/BodyLeases.ts"
import * as LogThrottle from "../services/LogThrottle.ts"
import { Upstream } from "../services/Upstream.ts"
import * as LimitDenial from "../state/limits/LimitDenial.ts"
import type * as Meters from "../state/limits/Meters.ts"
import type { DenialRecord } from "../state/UsageRecord.ts"
import type * as BufferedResponse from "./forward/BufferedResponse.ts"
import { Destinations } from "./forward/Destination.ts"
import type { CreatedObjects } from "./forward/objects/CreatedObjects.ts"
import * as ObjectAccess from "./forward/objects/ObjectAccess.ts"
import { ObjectOwners } from "./forward/objects/ObjectOwners.ts"
import * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import { controlStateUnavailable, GatewayError, internalError } from "./GatewayError.ts"
import * as MeterCache from "./limits/MeterCache.ts"
import * as MeterRefusal from "./limits/MeterRefusal.ts"
import {
  type Admission,
  type LimitsUnavailable,
  type Reservation,
  reservationOf,
  UsageLimits
} from "./limits/UsageLimits.ts"
import { RequestGuardrails } from "./RequestGuardrails.ts"
import { BodyAdmission } from "./request/BodyAdmission.ts"
import type { Request } from "./request/Request.ts"
import { ControlState } from "./snapshot/ControlState.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import type { RequestOutcome } from "./telemetry/RequestOutcome.ts"
import type { Span } from "./telemetry/Tracing.ts"
import * as Billing from "./usage/Billing.ts"
import * as DenialRecords from "./usage/DenialRecords.ts"
import * as RequestAccount from "./usage/RequestAccount.ts"
import { UsageLog } from "./usage/UsageLog.ts"

export interface KeyedServices {
  readonly admission: BodyAdmission["Service"]
  readonly control: ControlState["Service"]
  readonly destinations: Destinations["Service"]
  readonly guardrails: RequestGuardrails["Service"]
  readonly limits: UsageLimits["Service"]
  readonly owners: ObjectOwners["Service"]
  readonly upstream: Upstream["Service"]
  readonly usageLog: UsageLog["Service"]
  readonly metersFor: ReturnType<typeof MeterCache.memoizedMeters>
  readonly now: () => number
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  readonly logThrottle: LogThrottle.LogThrottle
}

export const makeServices = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const services: KeyedServices = {
    admission: yield* BodyAdmission,
    control: yield* ControlState,
    destinations: yield* Destinations,
    guardrails: yield* RequestGuardrails,
    limits: yield* UsageLimits,
    owners: yield* ObjectOwners,
    upstream: yield* Upstream,
    usageLog: yield* UsageLog,
    metersFor: MeterCache.memoizedMeters(),
    now: () => clock.currentTimeMillisUnsafe(),
    fork: Effect.runForkWith(yield* Effect.context<never>()),
    logThrottle: yield* LogThrottle.make
  }
  return services
})

type Account = Pick<
  RequestAccount.RequestAccount,
  | "status"
  | "error"
  | "bill"
  | "provider"
  | "fallbackCount"
  | "fallbackReason"
  | "upstreamMs"
  | "firstByteAt"
  | "denial"
  | "objects"
>

/**
 * The steps that all requests with a gateway key share. Every request ends in `#settle`, which queues one usage record
 * and replaces the reserved amounts by the actual usage. The client gets the last byte of its response only after that.
 *
 * Each step calls the next one from a callback. Compared with Effects, callbacks save a quarter of the CPU time.
 */
export abstract class KeyedRequest<Services extends KeyedServices, Target extends RoutedRequest> {
  protected readonly services: Services
  protected readonly request: Request
  protected readonly target: Target
  protected readonly key: KeyRecord
  protected readonly span: Span
  protected readonly lifecycle: RequestLifecycle.RequestLifecycle
  /**
   * Memory for the request body, released when the upstream responds. If the response is inspected, the lease then
   * holds memory for the response until the client has taken it.
   */
  protected readonly lease: BodyLease

  /** The policy that applies. Before the body is read, it does not include the policies of the requested models. */
  protected effective: EffectivePolicy
  protected facts = Facts.noFacts
  protected readings: ReadonlyArray<Meters.MeterReading> = []
  /** The provider of the latest upstream attempt. Before the first attempt, it is the provider of the route. */
  protected provider: RoutedRequest["provider"]
  /** Cancels the current step when the client disconnects. `undefined` if the current step cannot be cancelled. */
  protected cancelStep: (() => void) | undefined
  /** True if the client disconnected during a step that cannot be cancelled. The request is then not sent upstream. */
  protected clientGone = false

  /** The reservation that must be settled. After a Redis error it is set too, because Redis may have stored it. */
  #reservation: Reservation | undefined
  #endedExchange: { readonly account: Account; readonly headSent: boolean } | undefined
  #recorded = false
  #model: string | undefined

  constructor(
    services: Services,
    request: Request,
    target: Target,
    key: KeyRecord,
    span: Span,
    lifecycle: RequestLifecycle.RequestLifecycle
  ) {
    this.services = services
    this.request = request
    this.target = target
    this.key = key
    this.span = span
    this.lifecycle = lifecycle
    this.lease = services.admission.lease(key.id)
    this.effective = services.control.policyOf(key, target.route, [])
    this.provider = target.provider
  }

  /** Starts the request. Returns the function to call when the client disconnects. */
  run(): RequestLifecycle.OnDisconnect {
    try {
      this.begin()
    } catch (defect) {
      this.fail(defect)
    }
    return () => {
      if (this.cancelStep === undefined) this.clientGone = true
      else this.cancelStep()
    }
  }

  protected abstract begin(): void

  /** If the client disconnects while its body arrives, the request ends. Otherwise `step` runs with the body. */
  protected onceRead<A>(step: (body: A) => void): (body: A) => void {
    const phase = this.span.startPhase("gateway.body")
    this.cancelStep = this.catching<void>(() => {
      phase.end()
      this.endDisconnected()
    })
    return this.catching((body: A) => {
      if (this.#recorded) return
      this.cancelStep = undefined
      phase.end()
      step(body)
    })
  }

  protected admit(meters: Meters.RequestMeters, wanted: Estimate.UsageEstimate, admitted: () => void) {
    const phase = this.span.startPhase("gateway.limits.admit")
    this.services.limits.admitUnsafe(
      this.request.recordId,
      meters,
      wanted,
      this.catching((exit) => {
        phase.end()
        if (Exit.isFailure(exit)) return this.#refuseUnavailable(exit.cause)
        if (exit.value._tag === "Refused") return this.#refuseByLimit(exit.value)
        this.readings = exit.value.readings
        this.#reservation = exit.value.reservation
        admitted()
      })
    )
  }

  protected admitObjects(references: Facts.Facts["references"], admitted: () => void) {
    ObjectAccess.checkAccess(
      this.#objectAccess(),
      references,
      this.catching((refusal) => (refusal === undefined ? admitted() : this.refuse(refusal)))
    )
  }

  protected meters(): Meters.RequestMeters {
    const { control, metersFor, now } = this.services
    return metersFor(this.effective, (effective) => control.limitScopes(this.key, effective), now())
  }

  /** Returns a limit counter that this process already knows to be full. Does not call Redis. */
  protected fullMeter(): Meters.MeterReading | undefined {
    return this.services.limits.fullMeter(() => this.meters())
  }

  protected observeCreatedObjects(creation: CreationRequest | undefined): CreatedObjects | undefined {
    const { key, provider, request, services, target } = this
    return ObjectAccess.observerFor(
      target.objects,
      request.wire.method,
      (objects) => services.owners.rememberUnsafe(provider, objects, key, () => {}),
      creation
    )
  }

  /** Returns a filter that removes objects of other owners from a list. `undefined` if no filter is needed. */
  protected objectFilter(): BufferedResponse.ResponseInspector | undefined {
    const filter = ObjectAccess.listFilter(this.#objectAccess())
    if (filter === undefined) return undefined
    return {
      lease: this.lease,
      notJsonError: ObjectAccess.unreadableList,
      inspect: (text, done) => filter(text, this.catching(done))
    }
  }

  #objectAccess(): ObjectAccess.ObjectAccess {
    return { owners: this.services.owners, target: this.target, key: this.key }
  }

  protected settleExchange(
    exchange: Omit<Account, "objects">,
    headSent: boolean,
    observer: CreatedObjects | undefined,
    then: (account: Account, model: string | undefined) => void
  ) {
    const objects = observer?.objects() ?? []
    const account: Account = objects.length === 0 ? exchange : { ...exchange, objects }
    this.#endedExchange = { account, headSent }
    const settle = () => this.#settle(account, () => then(account, this.#model))
    // A client may use a new object as soon as it reads the ID. Unstored owners must be stored before that.
    const unannounced = observer?.unannounced() ?? []
    if (unannounced.length === 0) settle()
    else this.services.owners.rememberUnsafe(account.provider, unannounced, this.key, this.catching<void>(settle))
  }

  #settle(account: Account, then: () => void): void {
    // A callback may arrive after the request has ended.
    if (this.#recorded) return
    const phase = this.span.startPhase("gateway.settle")
    const record = RequestAccount.toRecord({
      ...account,
      ...this.recordDetails(),
      request: this.request,
      target: this.target,
      key: this.key,
      facts: this.facts,
      policy: this.effective,
      endedAt: this.services.now()
    })
    this.#recorded = true
    this.#model = record.model ?? undefined
    this.services.usageLog.settleUnsafe(
      this.#reservation,
      account.bill.settled,
      record,
      this.catching<void>(() => {
        phase.end()
        then()
      })
    )
  }

  protected recordDetails(): Pick<
    RequestAccount.RequestAccount,
    "subject" | "guardrails" | "requestHash" | "responseHash"
  > {
    return { guardrails: undefined }
  }

  protected refuse(error: GatewayError, denial?: DenialRecord) {
    const account = { ...unbilledAccount, status: error.status, error, provider: this.provider, denial }
    this.#settle(account, () => {
      RequestLifecycle.sendRefusal(this.request, error, this.readings, this.services.now())
      this.end({ ...account, model: this.#model, streamed: this.facts.stream, aborted: false })
    })
  }

  protected refuseByPolicy(refusal: Refusals.PolicyRefusal) {
    this.refuse(new GatewayError(refusal), DenialRecords.ofRequest(refusal))
  }

  /** `reading` is a counter that was full before this request reserved anything. */
  protected refuseByFullMeter(reading: Meters.MeterReading) {
    this.#refuseByLimit({ reading, wanted: 1 })
  }

  #refuseByLimit({ reading, wanted }: Pick<Extract<Admission, { readonly _tag: "Refused" }>, "reading" | "wanted">) {
    const { meter, used } = reading
    this.readings = [reading]
    this.refuse(
      MeterRefusal.refusal(meter, used, wanted, this.services.now(), this.outputTokensThatFit(meter)),
      LimitDenial.of(reading, wanted, this.effective)
    )
  }

  /** Returns the output tokens that the error suggests. Returns `undefined` if fewer tokens would not help. */
  protected outputTokensThatFit(_meter: Meters.Meter): number | undefined {
    return undefined
  }

  #refuseUnavailable(cause: Cause.Cause<LimitsUnavailable>) {
    const unavailable = Result.getOrUndefined(Cause.findError(cause))
    this.#reservation = unavailable?.reservation
    const { fork, logThrottle } = this.services
    const why = unavailable?.cause ?? Cause.squash(cause)
    fork(
      logThrottle("limits", (suppressed) =>
        Effect.logWarning("limits cannot be checked; the request is refused", { cause: why, ...suppressed })
      )
    )
    this.refuse(controlStateUnavailable)
  }

  /**
   * An invalid body counts as one request in the limits, because reading it cost work. The client gets the error of the
   * body even if a limit is reached or Redis is unavailable.
   */
  protected refuseBody(failure: GatewayError, limit: BodyLimit) {
    const byPolicy = failure.code === "request_body_too_large" && limit.setBy === "this key's policy"
    const denial = byPolicy ? DenialRecords.ofBody(this.effective) : undefined
    if (failure.status >= 500) return this.refuse(failure, denial)
    this.services.limits.admitUnsafe(
      this.request.recordId,
      this.meters(),
      Estimate.requestOnly,
      this.catching((exit) => {
        this.#reservation = reservationOf(exit)
        this.refuse(failure, denial)
      })
    )
  }

  /** Ends a request whose client disconnected before anything was sent upstream. The request costs nothing. */
  protected endDisconnected() {
    const account = {
      ...unbilledAccount,
      status: RequestLifecycle.clientClosedStatus,
      error: undefined,
      provider: this.provider
    }
    this.#settle(account, () => this.end(RequestLifecycle.clientClosedOutcome))
  }

  /** Frees the memory of the bodies and ends the request. Until then it counts as running. */
  protected end(outcome: RequestOutcome) {
    this.lease.release()
    this.lifecycle.end(outcome)
  }

  /** Ends the request after a gateway defect. It is still billed if the upstream may have received it. */
  protected fail(defect: unknown) {
    this.lease.release()
    if (this.#recorded) return this.lifecycle.fail(defect)
    const exchange = this.#endedExchange
    try {
      const account: Account = {
        ...unbilledAccount,
        provider: this.provider,
        bill: this.billOfDefect(),
        ...exchange?.account,
        status: exchange?.headSent === true ? exchange.account.status : internalError.status,
        error: internalError
      }
      this.#settle(account, () => this.lifecycle.fail(defect))
    } catch (secondDefect) {
      this.services.fork(
        Effect.logError("a failed request could not be recorded; its usage record is lost", { defect: secondDefect })
      )
      this.lifecycle.fail(defect)
    }
  }

  /** Returns the bill for a request that fails because of a gateway defect before the upstream attempt has ended. */
  protected billOfDefect(): Billing.Bill {
    return Billing.unbilled
  }

  /** Returns a callback that runs `step`. If `step` throws, the request fails. */
  protected catching<A>(step: (value: A) => void): (value: A) => void {
    return (value) => {
      try {
        step(value)
      } catch (defect) {
        this.fail(defect)
      }
    }
  }
}

export const unbilledAccount = { bill: Billing.unbilled, fallbackCount: 0, denial: undefined } as const

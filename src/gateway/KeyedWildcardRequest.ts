import { Result } from "effect"
import * as Estimate from "../policy/Estimate.ts"
import * as Facts from "../policy/facts/Facts.ts"
import * as NamedModels from "../policy/facts/NamedModels.ts"
import * as Query from "../policy/facts/Query.ts"
import type { ClientKind } from "../policy/facts/ResponseHeaders.ts"
import * as Policy from "../policy/Policy.ts"
import { byPolicy } from "../policy/Refusals.ts"
import type { WildcardTarget } from "../policy/Routing.ts"
import { ofRequests } from "../policy/routes/BodyLimit.ts"
import * as CompatPaths from "../policy/routes/CompatPaths.ts"
import type * as Meters from "../state/limits/Meters.ts"
import type { Destination } from "./forward/Destination.ts"
import type { RequestLifecycle } from "./forward/RequestLifecycle.ts"
import * as StreamedRequest from "./forward/StreamedRequest.ts"
import { GatewayError } from "./GatewayError.ts"
import * as KeyedRequest from "./KeyedRequest.ts"
import type * as MeterCache from "./limits/MeterCache.ts"
import type * as Request from "./request/Request.ts"
import * as DenialRecords from "./usage/DenialRecords.ts"
import * as WildcardBody from "./WildcardBody.ts"

export interface WildcardServices extends KeyedRequest.KeyedServices {
  readonly requestCounters: ReturnType<typeof MeterCache.requestCountersOnly>
}

/** Handles one passthrough request with a gateway key. Its methods run in this order: begin, read, admit, send. */
export class KeyedWildcardRequest extends KeyedRequest.KeyedRequest<WildcardServices, WildcardTarget> {
  protected begin() {
    const { key, request, target } = this
    const { destinations, now } = this.services
    const running = this.lifecycle.startRunning(key.id)
    const denial = byPolicy(this.effective, policyRequestOf(request, target, running, now()))
    if (denial !== undefined) return this.refuseByPolicy(denial)
    const unread = this.#unreadBodyDenial()
    if (unread !== undefined) {
      return this.refuse(new GatewayError(unread), DenialRecords.ofUnreadBody(unread, this.effective))
    }
    const guardrailRefusal = this.#guardrailRefusal()
    if (guardrailRefusal !== undefined) return this.refuse(guardrailRefusal)
    const destination = destinations.find(target, request.family, key)
    if (Result.isFailure(destination)) return this.refuse(destination.failure)
    // A body without a reader is streamed unread, because it needs no check of object owners.
    const reader = WildcardBody.readerOf(request, target)
    if (reader === undefined) return this.#admitAndSend(destination.success, undefined)
    const full = this.fullMeter()
    if (full !== undefined) this.refuseByFullMeter(full)
    else this.#read(reader, destination.success)
  }

  #unreadBodyDenial() {
    if (this.target.settings.body_policies === "skip" || !mayConcernPolicy(this.request, this.target)) return undefined
    const { layers } = this.services.control.snapshot()
    return Policy.unreadBodyDenial(this.effective.policy, layers.of.model.size > 0)
  }

  /** Guardrails cannot inspect passthrough requests. A request is refused if the key's policy selects one. */
  #guardrailRefusal(): GatewayError | undefined {
    if (this.target.settings.guardrails === "skip") return undefined
    const selected = this.services.guardrails.defaultSelection(this.effective.guardrails)
    if (Result.isFailure(selected)) return new GatewayError(selected.failure)
    const [first] = selected.success
    return first && guardrailCannotInspect(first.definition.name)
  }

  #read(reader: WildcardBody.BodyReader, destination: Destination) {
    const { config } = this.target
    const { wire } = this.request
    const limit = ofRequests(config, this.effective.policy.max_request_body_bytes)
    reader.read(
      wire,
      { lease: this.lease, limit, withinMs: config.timeoutMs },
      this.onceRead((received) => {
        const body = Result.flatMap(received, (bytes) => reader.parse(wire, bytes))
        if (Result.isSuccess(body)) this.#admitAndSend(destination, body.success)
        else this.refuseBody(body.failure, limit)
      })
    )
  }

  #admitAndSend(destination: Destination, body: WildcardBody.ReadBody | undefined) {
    this.admit(this.meters(), Estimate.requestOnly, () =>
      this.admitObjects(body?.references ?? [], () => this.#send(destination, body))
    )
  }

  #send(destination: Destination, body: WildcardBody.ReadBody | undefined) {
    if (this.clientGone) return this.endDisconnected()
    const { key, request, target } = this
    const { now, upstream } = this.services
    const observer = this.observeCreatedObjects(body?.creation)
    const options: StreamedRequest.StreamedRequestOptions = {
      request,
      target,
      key,
      destination,
      appliedPolicy: { policy: this.effective.policy, readings: this.readings },
      clientKind: clientKindOf(target),
      bufferedBody: body?.bytes,
      onResponse: this.lease.release,
      observer,
      inspector: this.objectFilter(),
      settle: ({ headSent, ...outcome }, then) => {
        const exchange = { ...KeyedRequest.unbilledAccount, ...outcome, provider: this.provider }
        this.settleExchange(exchange, headSent === true, observer, then)
      }
    }
    const lifecycle: RequestLifecycle = {
      ...this.lifecycle,
      end: (outcome) => this.end(outcome),
      fail: (defect) => this.fail(defect)
    }
    this.cancelStep = StreamedRequest.run(upstream, options, now, this.span, lifecycle)
  }

  /** Tokens and cost of passthrough requests are unknown, so only the limits on requests apply. */
  protected override meters(): Meters.RequestMeters {
    return this.services.requestCounters(super.meters())
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
 * Returns true if the request may depend on policies that passthrough cannot check. Such a request has a body, has a
 * query parameter that policy reads, names a model in its path, or starts work (such as resuming a job).
 */
const mayConcernPolicy = ({ wire }: Request.Request, { target }: WildcardTarget): boolean => {
  if (StreamedRequest.hasBody(wire) || Query.decidingParameter(target, Facts.decidingMembers) !== undefined) return true
  if (wire.method !== "POST") return false
  const { models, unjudgedMember } = NamedModels.namedInPath(target)
  return models.length > 0 || unjudgedMember !== undefined || CompatPaths.workOf(target) === "later"
}

/**
 * Returns true if the request starts upstream work whose models and tokens the gateway cannot see, such as a batch from
 * an uploaded file. Such work would bypass the limits.
 */
const worksLater = ({ wire }: Request.Request, { settings, target }: WildcardTarget): boolean =>
  settings.body_policies !== "skip" && wire.method === "POST" && CompatPaths.workOf(target) === "later"

const guardrailCannotInspect = (guardrail: string): GatewayError =>
  new GatewayError({
    code: "policy_denied",
    message: `The guardrail ${guardrail} of this key cannot inspect requests on this path. Use a route that the gateway reads, or ask an operator to set guardrails to skip in the passthrough settings.`
  })

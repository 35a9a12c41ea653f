import { Cause, Clock, Effect, Exit, Option, Predicate, Result } from "effect"
import * as Headers from "../http/Headers.ts"
import * as Estimate from "../policy/Estimate.ts"
import * as Facts from "../policy/facts/Facts.ts"
import * as NamedModels from "../policy/facts/NamedModels.ts"
import * as Query from "../policy/facts/Query.ts"
import type { ClientKind } from "../policy/facts/ResponseHeaders.ts"
import type { GuardrailPolicy } from "../policy/GuardrailPolicy.ts"
import * as Policy from "../policy/Policy.ts"
import { byPolicy } from "../policy/Refusals.ts"
import type { WildcardTarget } from "../policy/Routing.ts"
import { ofRequests } from "../policy/routes/BodyLimit.ts"
import * as CompatPaths from "../policy/routes/CompatPaths.ts"
import {
  type CreationRequest,
  formKindOf,
  referencedObjects,
  type UpstreamObject
} from "../policy/routes/UpstreamObjects.ts"
import * as UpstreamPaths from "../policy/routes/UpstreamPaths.ts"
import * as LogThrottle from "../services/LogThrottle.ts"
import { Upstream } from "../services/Upstream.ts"
import type { DenialRecord as DeniedRecord } from "../state/UsageRecord.ts"
import { type Destination, Destinations } from "./forward/Destination.ts"
import * as LocationHeaders from "./forward/LocationHeaders.ts"
import * as ObjectAccess from "./forward/ObjectAccess.ts"
import { ObjectOwners } from "./forward/ObjectOwners.ts"
import * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import * as StreamedRequest from "./forward/StreamedRequest.ts"
import { controlStateUnavailable, GatewayError, internalError, queueFull } from "./GatewayError.ts"
import type { MeterReading } from "./limits/Meters.ts"
import * as Meters from "./limits/Meters.ts"
import { type Admission, type Reservation, reservationOf, UsageLimits } from "./limits/UsageLimits.ts"
import { RequestGuardrails } from "./RequestGuardrails.ts"
import { BodyAdmission } from "./request/BodyAdmission.ts"
import * as ContentTypes from "./request/ContentTypes.ts"
import * as FormBody from "./request/FormBody.ts"
import type * as Request from "./request/Request.ts"
import * as RequestBody from "./request/RequestBody.ts"
import type { Wire } from "./request/Wire.ts"
import { ControlState } from "./snapshot/ControlState.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import type * as Tracing from "./telemetry/Tracing.ts"
import * as Billing from "./usage/Billing.ts"
import * as DenialRecords from "./usage/DenialRecords.ts"
import * as RequestAccount from "./usage/RequestAccount.ts"
import { UsageLog } from "./usage/UsageLog.ts"

/**
 * A path that no other route took. Path, query and bodies go on as they came, up to the settings' limits. A body is read
 * only for the objects that it refers to, and an answer only where it lists or names such. The key's policy holds as far
 * as it can be held that way: `deny`, the route, the
 * provider, the hours, sizes, and requests per minute and day. A request whose policy needs more than that is refused,
 * unless the settings let it go without. Tokens and money are not counted here.
 */
export interface WildcardRequests {
  /** With a gateway key: its upstream credential, and a record of the status alone. */
  readonly runWithKey: (
    request: Request.Request,
    target: WildcardTarget,
    key: KeyRecord,
    span: Tracing.Span,
    outcome: RequestLifecycle.RequestLifecycle
  ) => RequestLifecycle.OnDisconnect
  /** From a trusted ingress, for a browser that has no key: the provider's own credential, and no record. */
  readonly runWithoutKey: (
    request: Request.Request,
    target: WildcardTarget,
    span: Tracing.Span,
    outcome: RequestLifecycle.RequestLifecycle
  ) => RequestLifecycle.OnDisconnect
}

/** `objects`: what the answer made known. */
type RecordedOutcome = StreamedRequest.ExchangeOutcome & { readonly objects?: ReadonlyArray<UpstreamObject> }

type Services =
  | BodyAdmission
  | ControlState
  | Destinations
  | RequestGuardrails
  | UsageLimits
  | ObjectOwners
  | Upstream
  | UsageLog

export const make: Effect.Effect<WildcardRequests, never, Services> = Effect.gen(function* () {
  const admission = yield* BodyAdmission
  const control = yield* ControlState
  const destinations = yield* Destinations
  const guarding = yield* RequestGuardrails
  const limits = yield* UsageLimits
  const owners = yield* ObjectOwners
  const upstream = yield* Upstream
  const usageLog = yield* UsageLog
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const seldom = yield* LogThrottle.make
  const logLimitsUnavailable = (cause: unknown) =>
    seldom("limits", (leftOut) => Effect.logWarning("limits cannot be checked", { cause, ...leftOut }))
  const metersOf = Meters.memoizedMeters()
  const countingRequests = Meters.requestCountersOnly()

  /** Why the key's guardrails keep the request from going where none can look at it. */
  const guardrailRefusal = (policy: GuardrailPolicy): GatewayError | undefined => {
    const selected = guarding.defaultSelection(policy)
    if (Result.isFailure(selected)) return new GatewayError(selected.failure)
    const [first] = selected.success
    return first && guardrailCannotInspect(first.definition.name)
  }

  const runWithKey: WildcardRequests["runWithKey"] = (request, target, key, span, outcome) => {
    if (!usageLog.hasRoom()) {
      outcome.refuse(queueFull)
      return noop
    }
    const asked: ObjectAccess.ObjectAccess = { owners, target, key }
    const effective = control.policyOf(key, target.route, [])
    const lease = admission.lease(key.id)
    /** What the limits hold for the request, until it is settled. */
    let reserved: Reservation | undefined
    /** What came of the exchange, when it is over. */
    let exchange: StreamedRequest.ExchangeOutcome | undefined
    let recorded = false

    /** The account of a request that the gateway fails on at this moment. */
    const failure = (): RecordedOutcome => ({
      ...exchange,
      status: exchange?.headSent === true ? exchange.status : internalError.status,
      error: internalError
    })
    const failed = (defect: unknown) => {
      lease.release()
      if (recorded) return outcome.fail(defect)
      try {
        settle(reserved, failure(), undefined, () => outcome.fail(defect))
      } catch (another) {
        fork(Effect.logError("a request that failed is not recorded", { defect: another }))
        outcome.fail(defect)
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
    const settle = (
      reservation: Reservation | undefined,
      came: RecordedOutcome,
      denial: DeniedRecord | undefined,
      then: () => void
    ) => {
      // it failed meanwhile
      if (recorded) return
      lease.release()
      const account = { ...emptyAccount, ...came, request, target, key, denial, policy: effective, endedAt: now() }
      const record = RequestAccount.toRecord(account)
      recorded = true
      usageLog.settleUnsafe(reservation, Billing.unbilled.settled, record, guarded<void>(then))
    }
    const refuse = (
      error: GatewayError,
      denial?: DeniedRecord,
      reservation?: Reservation,
      readings: ReadonlyArray<MeterReading> = []
    ) =>
      settle(reservation, { status: error.status, error }, denial, () => {
        RequestLifecycle.sendRefusal(request, error, readings, now())
        outcome.end({ status: error.status, error, streamed: false, aborted: false, bill: Billing.unbilled })
      })

    let gone = false
    const noted = () => {
      gone = true
    }
    let onDisconnect: RequestLifecycle.OnDisconnect = noted
    const send = (
      destination: Destination,
      body: ReadBody | undefined,
      reservation: Reservation,
      readings: ReadonlyArray<MeterReading>
    ) => {
      const settled = (came: RecordedOutcome, then: () => void) => settle(reservation, came, undefined, then)
      if (gone) {
        settled({ status: RequestLifecycle.clientClosedStatus, error: undefined }, () =>
          outcome.end(RequestLifecycle.clientClosedOutcome)
        )
        return
      }
      const admitted = { policy: effective.policy, readings }
      const watch = ObjectAccess.observerFor(
        target.objects,
        request.wire.method,
        (objects) => owners.rememberUnsafe(target.provider, objects, key, () => {}),
        body?.creation
      )
      const leaves = ObjectAccess.listFilter(asked)
      const streamed: StreamedRequest.StreamedRequestOptions = {
        request,
        target,
        key,
        destination,
        appliedPolicy: admitted,
        clientKind: clientKindOf(target),
        bufferedBody: body?.bytes,
        onResponse: lease.release,
        observer: watch,
        inspector: leaves && {
          lease,
          notJsonError: ObjectAccess.unreadableList,
          inspect: (text, done) => leaves(text, guarded(done))
        },
        settle: (came, then) => {
          exchange = came
          const objects = watch?.objects() ?? []
          const end = () => settled(objects.length === 0 ? came : { ...came, objects }, then)
          // who reads an id may use it at once
          const untold = watch?.unannounced() ?? []
          if (untold.length === 0) end()
          else owners.rememberUnsafe(target.provider, untold, key, guarded<void>(end))
        }
      }
      onDisconnect = StreamedRequest.run(upstream, streamed, now, span, { ...outcome, fail: failed })
    }
    const refuseFull = ({ reading, wanted }: Extract<Admission, { readonly _tag: "Refused" }>) =>
      refuse(
        Meters.refusal(reading.meter, reading.used, wanted, now()),
        DenialRecords.ofLimit(reading.meter, effective),
        undefined,
        [reading]
      )
    const meters = () =>
      countingRequests(metersOf(effective, (effective) => control.limitScopes(key, effective), now()))
    const admit = (destination: Destination, body: ReadBody | undefined) =>
      limits.admitUnsafe(
        request.recordId,
        meters(),
        Estimate.requestOnly,
        guarded((exit) => {
          if (Exit.isFailure(exit)) {
            const unavailable = Option.getOrUndefined(Exit.findErrorOption(exit))
            fork(logLimitsUnavailable(unavailable?.cause ?? Cause.squash(exit.cause)))
            refuse(controlStateUnavailable, undefined, unavailable?.reservation)
          } else if (exit.value._tag === "Refused") refuseFull(exit.value)
          else {
            const { readings, reservation } = exit.value
            reserved = reservation
            ObjectAccess.checkAccess(
              asked,
              ObjectAccess.objectsUsed(target.objects, body?.references ?? []),
              guarded((refusal) =>
                refusal === undefined
                  ? send(destination, body, reservation, readings)
                  : refuse(refusal, undefined, reservation, readings)
              )
            )
          }
        })
      )
    const begin = () => {
      const question = questionOf(target, worksLater(request, target), outcome.startRunning(key.id), now())
      const denied = byPolicy(effective, question)
      if (denied !== undefined) return refuse(new GatewayError(denied), DenialRecords.ofRequest(denied))
      const unread =
        target.settings.body_policies === "skip" || !mayConcernPolicy(request, target)
          ? undefined
          : Policy.unreadBodyDenial(effective.policy, control.snapshot().layers.of.model.size > 0)
      if (unread !== undefined) return refuse(new GatewayError(unread), DenialRecords.ofUnreadBody(unread, effective))
      const unseen = target.settings.guardrails === "skip" ? undefined : guardrailRefusal(effective.guardrails)
      if (unseen !== undefined) return refuse(unseen)
      const destination = destinations.find(target, request.family, key)
      if (Result.isFailure(destination)) return refuse(destination.failure)
      const reader = bodyReaderOf(request, target)
      if (reader === undefined) return admit(destination.success, undefined)
      const full = limits.fullMeter(meters)
      if (full !== undefined) return refuseFull({ _tag: "Refused", reading: full, wanted: 1 })
      let left = false
      // before its body is whole: nothing was had, and that it asked is on record
      onDisconnect = guarded<void>(() => {
        left = true
        settle(undefined, { status: RequestLifecycle.clientClosedStatus, error: undefined }, undefined, () =>
          outcome.end(RequestLifecycle.clientClosedOutcome)
        )
      })
      const limit = ofRequests(target.config, effective.policy.max_request_body_bytes)
      /** It counts as a request: reading the body was work, and a key with few requests would have any number of them. */
      const refuseBody = (failure: GatewayError) => {
        const byPolicy = failure.code === "request_body_too_large" && limit.setBy === "this key's policy"
        const denial = byPolicy ? DenialRecords.ofBody(effective) : undefined
        if (failure.status >= 500) return refuse(failure, denial)
        limits.admitUnsafe(
          request.recordId,
          meters(),
          Estimate.requestOnly,
          guarded((exit) => refuse(failure, denial, reservationOf(exit)))
        )
      }
      reader.read(
        request.wire,
        { lease, limit, withinMs: target.config.timeoutMs },
        guarded((received) => {
          if (left) return
          onDisconnect = noted
          const body = Result.flatMap(received, (bytes) => reader.parse(request.wire, bytes))
          if (Result.isSuccess(body)) admit(destination.success, body.success)
          else refuseBody(body.failure)
        })
      )
    }
    guarded<void>(begin)()
    return () => onDisconnect()
  }

  const runWithoutKey: WildcardRequests["runWithoutKey"] = (request, target, span, outcome) => {
    const destination = destinations.find(target, request.family, undefined)
    if (Result.isFailure(destination)) {
      outcome.refuse(destination.failure)
      return noop
    }
    const headers = LocationHeaders.forBrowser(request.wire.headers, destination.success.base)
    const streamed = {
      request,
      target,
      key: undefined,
      destination: destination.success,
      rewriteHeaders: headers,
      clientKind: clientKindOf(target)
    }
    return StreamedRequest.run(upstream, streamed, now, span, outcome)
  }

  return { runWithKey, runWithoutKey }
})

/** Without a UI that is exposed, only programs come by the wildcard. */
const clientKindOf = ({ settings }: WildcardTarget): ClientKind =>
  settings.ui_exposure === "disabled" ? "program" : "browser"

const questionOf = (
  { provider, route }: WildcardTarget,
  worksLater: boolean,
  running: number,
  now: number
): Policy.PolicyRequest => ({
  route,
  provider,
  worksLater,
  facts: Facts.noFacts,
  // the body is counted while it passes
  requestBytes: 0,
  responseBytes: undefined,
  hourUtc: new Date(now).getUTCHours(),
  running,
  estimatedCostNanos: 0,
  unpricedModels: []
})

/** A body that was read, the objects that it refers to, and what it says of those that the answer makes. */
interface ReadBody {
  readonly bytes: Buffer
  readonly references: Facts.Facts["references"]
  readonly creation?: CreationRequest
}

/** How a body is read for the objects that it refers to. */
interface BodyReader {
  readonly read: typeof RequestBody.readJson
  readonly parse: (wire: Wire, bytes: Buffer) => Result.Result<ReadBody, GatewayError>
}

/**
 * `undefined`: the body streams through, because no key owns objects, or because it brings contents alone, as uploads
 * do. Administration names objects of all keys.
 */
const bodyReaderOf = (
  { wire }: Request.Request,
  { config, objects, target }: WildcardTarget
): BodyReader | undefined => {
  if (config.ownership === "shared" || objects._tag === "Unclear" || !StreamedRequest.hasBody(wire)) return undefined
  const multipart = isForm(wire)
  if (objects._tag === "None") {
    return multipart || UpstreamPaths.sensitiveGroup(pathOf(target)) !== undefined ? undefined : readers.any
  }
  const form = formKindOf(objects)
  return multipart && form === "contents" ? undefined : multipart && form === "request" ? readers.form : readers.json
}

const pathOf = (target: string): string => target.split("?", 1)[0]!

const isForm = ({ headers }: Wire): boolean =>
  Headers.getAll(headers, "content-type").every((type) => /^multipart\/form-data\s*(?:;|$)/i.test(type)) &&
  Headers.get(headers, "content-type") !== undefined

/** Refuses what two readers could understand differently, as on the gateway's own routes. */
const parseJsonBody: BodyReader["parse"] = (_, bytes) =>
  bytes.length === 0
    ? Result.succeed({ bytes, references: [] })
    : Result.mapBoth(Facts.parse("compat", bytes), {
        onFailure: (problem) => new GatewayError(problem),
        onSuccess: ({ facts }) => ({ bytes, references: facts.references, creation: facts })
      })

/** The same of a form, of which only what names objects is read. */
const parseFormBody: BodyReader["parse"] = (wire, bytes) =>
  FormBody.read(Headers.get(wire.headers, "content-type") ?? "", bytes, new Set(Facts.formFieldNames("compat"))).pipe(
    Result.mapError((message) => new GatewayError({ code: "invalid_request_body", message })),
    Result.flatMap((form) => Result.mapError(Facts.ofForm("compat", form), (problem) => new GatewayError(problem))),
    Result.map(({ references }): ReadBody => ({ bytes, references }))
  )

/** The same of a body that may be anything, whatever it is called: what is no JSON and no form refers to nothing. */
const parseAnyBody: BodyReader["parse"] = (wire, bytes) => {
  if (ContentTypes.isUrlEncoded(wire.headers) && !ContentTypes.startsLikeJson(bytes)) return parseFormBody(wire, bytes)
  const json = Facts.readJson(bytes)
  if (Result.isSuccess(json) && Predicate.isObject(json.success.json)) return parseJsonBody(wire, bytes)
  if (Result.isSuccess(json)) {
    return Result.succeed({ bytes, references: referencedObjects(json.success.text, json.success.json) })
  }
  const { problem } = json.failure
  return ContentTypes.startsLikeJson(bytes)
    ? Result.fail(new GatewayError(problem))
    : Result.succeed({ bytes, references: [] })
}

const readers = {
  json: { read: RequestBody.readJson, parse: parseJsonBody },
  form: { read: RequestBody.readAny, parse: parseFormBody },
  any: { read: RequestBody.readAny, parse: parseAnyBody }
} as const

/**
 * Whether the request asks for something that a policy looks for in bodies: by one, by a query that some upstreams would
 * take for one, by a path that names a model, or by one that begins work (as it resumes a job).
 */
const mayConcernPolicy = ({ wire }: Request.Request, { target }: WildcardTarget): boolean => {
  if (StreamedRequest.hasBody(wire) || Query.decidingParameter(target, Facts.decidingMembers) !== undefined) return true
  if (wire.method !== "POST") return false
  const { models, unjudgedMember } = NamedModels.namedInPath(target)
  return models.length > 0 || unjudgedMember !== undefined || CompatPaths.workOf(target) === "later"
}

/**
 * Whether the request has the upstream do work whose models and tokens nobody here sees, as a batch of an uploaded file
 * does: the requests in it would have to keep to the limits of the governed routes, and nothing of it is counted here.
 */
const worksLater = ({ wire }: Request.Request, { settings, target }: WildcardTarget): boolean =>
  settings.body_policies !== "skip" && wire.method === "POST" && CompatPaths.workOf(target) === "later"

const guardrailCannotInspect = (guardrail: string): GatewayError =>
  new GatewayError({
    code: "policy_denied",
    message: `This key is under the guardrail ${guardrail}, which cannot look into what passes here. Use a route that the gateway reads, or ask an operator to set guardrails to skip in the passthrough settings.`
  })

const noop: RequestLifecycle.OnDisconnect = () => {}

const emptyAccount = {
  facts: Facts.noFacts,
  guardrails: undefined,
  bill: Billing.unbilled,
  provider: "upstream",
  fallbackCount: 0
} as const

import { Cause, Clock, Effect, Exit, Option, Predicate, Result } from "effect"
import * as Headers from "../http/Headers.ts"
import * as Estimate from "../policy/Estimate.ts"
import type { Reader } from "../policy/facts/AnswerHeaders.ts"
import * as Facts from "../policy/facts/Facts.ts"
import * as NamedModels from "../policy/facts/NamedModels.ts"
import * as Query from "../policy/facts/Query.ts"
import type { GuardrailPolicy } from "../policy/GuardrailPolicy.ts"
import * as Policy from "../policy/Policy.ts"
import { byPolicy } from "../policy/Refusals.ts"
import type { Wildcard } from "../policy/Routing.ts"
import { ofRequests } from "../policy/routes/BodyLimit.ts"
import * as CompatPaths from "../policy/routes/CompatPaths.ts"
import { formOf, type Making, referredTo, type UpstreamObject } from "../policy/routes/UpstreamObjects.ts"
import * as UpstreamPaths from "../policy/routes/UpstreamPaths.ts"
import * as Seldom from "../services/Seldom.ts"
import { Upstream } from "../services/Upstream.ts"
import type { Denied as DeniedRecord } from "../state/UsageRecord.ts"
import { type Destination, Destinations } from "./forward/Destination.ts"
import { ObjectOwners } from "./forward/ObjectOwners.ts"
import * as ObjectRules from "./forward/ObjectRules.ts"
import * as PublicLocation from "./forward/PublicLocation.ts"
import * as RequestEnd from "./forward/RequestEnd.ts"
import * as StreamedRequest from "./forward/StreamedRequest.ts"
import { controlStateUnavailable, GatewayError, internalError, queueFull } from "./GatewayError.ts"
import { Guarding } from "./Guarding.ts"
import { type Admission, Limits, type Reservation, reservedBy } from "./limits/Limits.ts"
import type { Reading } from "./limits/Meters.ts"
import * as Meters from "./limits/Meters.ts"
import { BodyAdmission } from "./request/BodyAdmission.ts"
import * as BodyLabels from "./request/BodyLabels.ts"
import * as Form from "./request/Form.ts"
import type * as Request from "./request/Request.ts"
import * as RequestBody from "./request/RequestBody.ts"
import type { Wire } from "./request/Wire.ts"
import { ControlState } from "./snapshot/ControlState.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import type * as Tracing from "./telemetry/Tracing.ts"
import * as Billing from "./usage/Billing.ts"
import * as Denied from "./usage/Denied.ts"
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
  readonly keyed: (
    request: Request.Request,
    target: Wildcard,
    key: KeyRecord,
    span: Tracing.Span,
    outcome: RequestEnd.RequestEnd
  ) => RequestEnd.HungUp
  /** From a trusted ingress, for a browser that has no key: the provider's own credential, and no record. */
  readonly open: (
    request: Request.Request,
    target: Wildcard,
    span: Tracing.Span,
    outcome: RequestEnd.RequestEnd
  ) => RequestEnd.HungUp
}

/** `objects`: what the answer made known. */
type Came = StreamedRequest.Came & { readonly objects?: ReadonlyArray<UpstreamObject> }

type Services = BodyAdmission | ControlState | Destinations | Guarding | Limits | ObjectOwners | Upstream | UsageLog

export const make: Effect.Effect<WildcardRequests, never, Services> = Effect.gen(function* () {
  const admission = yield* BodyAdmission
  const control = yield* ControlState
  const destinations = yield* Destinations
  const guarding = yield* Guarding
  const limits = yield* Limits
  const owners = yield* ObjectOwners
  const upstream = yield* Upstream
  const usageLog = yield* UsageLog
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const seldom = yield* Seldom.make
  const unchecked = (cause: unknown) =>
    seldom("limits", (leftOut) => Effect.logWarning("limits cannot be checked", { cause, ...leftOut }))
  const metersOf = Meters.remembering()
  const countingRequests = Meters.countingRequests()

  /** Why the key's guardrails keep the request from going where none can look at it. */
  const unguarded = (policy: GuardrailPolicy): GatewayError | undefined => {
    const selected = guarding.selectedBy(policy)
    if (Result.isFailure(selected)) return new GatewayError(selected.failure)
    const [first] = selected.success
    return first && unseenBy(first.definition.name)
  }

  const keyed: WildcardRequests["keyed"] = (request, target, key, span, outcome) => {
    if (!usageLog.hasRoom()) {
      outcome.refused(queueFull)
      return ignored
    }
    const asked: ObjectRules.Asked = { owners, target, key }
    const effective = control.policyOf(key, target.route, [])
    const lease = admission.lease(key.id)
    /** What the limits hold for the request, until it is settled. */
    let reserved: Reservation | undefined
    /** What came of the exchange, when it is over. */
    let exchange: StreamedRequest.Came | undefined
    let recorded = false

    /** The account of a request that the gateway fails on at this moment. */
    const failure = (): Came => ({
      ...exchange,
      status: exchange?.headSent === true ? exchange.status : internalError.status,
      error: internalError
    })
    const failed = (defect: unknown) => {
      lease.release()
      if (recorded) return outcome.failed(defect)
      try {
        settle(reserved, failure(), undefined, () => outcome.failed(defect))
      } catch (another) {
        fork(Effect.logError("a request that failed is not recorded", { defect: another }))
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
    const settle = (
      reservation: Reservation | undefined,
      came: Came,
      denial: DeniedRecord | undefined,
      then: () => void
    ) => {
      // it failed meanwhile
      if (recorded) return
      lease.release()
      const account = { ...unaccounted, ...came, request, target, key, denial, policy: effective, endedAt: now() }
      const record = RequestAccount.toRecord(account)
      recorded = true
      usageLog.settleUnsafe(reservation, Billing.nothing.settled, record, guarded<void>(then))
    }
    const refuse = (
      error: GatewayError,
      denial?: DeniedRecord,
      reservation?: Reservation,
      readings: ReadonlyArray<Reading> = []
    ) =>
      settle(reservation, { status: error.status, error }, denial, () => {
        RequestEnd.refuse(request, error, readings, now())
        outcome.ended({ status: error.status, error, streamed: false, aborted: false, bill: Billing.nothing })
      })

    let gone = false
    const noted = () => {
      gone = true
    }
    let hungUp: RequestEnd.HungUp = noted
    const send = (
      destination: Destination,
      body: Read | undefined,
      reservation: Reservation,
      readings: ReadonlyArray<Reading>
    ) => {
      const settled = (came: Came, then: () => void) => settle(reservation, came, undefined, then)
      if (gone) {
        settled({ status: RequestEnd.clientClosed, error: undefined }, () => outcome.ended(RequestEnd.left))
        return
      }
      const admitted = { policy: effective.policy, readings }
      const watch = ObjectRules.watchOf(
        target.objects,
        request.wire.method,
        (objects) => owners.rememberUnsafe(target.provider, objects, key, () => {}),
        body?.making
      )
      const leaves = ObjectRules.listFilter(asked)
      const streamed: StreamedRequest.Streamed = {
        request,
        target,
        key,
        destination,
        admitted,
        reader: readerOf(target),
        read: body?.bytes,
        onAnswer: lease.release,
        watch,
        judge: leaves && {
          lease,
          unreadable: ObjectRules.noList,
          judge: (text, done) => leaves(text, guarded(done))
        },
        settle: (came, then) => {
          exchange = came
          const objects = watch?.objects() ?? []
          const end = () => settled(objects.length === 0 ? came : { ...came, objects }, then)
          // who reads an id may use it at once
          const untold = watch?.untold() ?? []
          if (untold.length === 0) end()
          else owners.rememberUnsafe(target.provider, untold, key, guarded<void>(end))
        }
      }
      hungUp = StreamedRequest.run(upstream, streamed, now, span, { ...outcome, failed })
    }
    const refuseFull = ({ reading, wanted }: Extract<Admission, { readonly _tag: "Refused" }>) =>
      refuse(
        Meters.refusal(reading.meter, reading.used, wanted, now()),
        Denied.ofLimit(reading.meter, effective),
        undefined,
        [reading]
      )
    const meters = () =>
      countingRequests(metersOf(effective, (effective) => control.limitScopes(key, effective), now()))
    const admit = (destination: Destination, body: Read | undefined) =>
      limits.admitUnsafe(
        request.recordId,
        meters(),
        Estimate.requestAlone,
        guarded((exit) => {
          if (Exit.isFailure(exit)) {
            const unavailable = Option.getOrUndefined(Exit.findErrorOption(exit))
            fork(unchecked(unavailable?.cause ?? Cause.squash(exit.cause)))
            refuse(controlStateUnavailable, undefined, unavailable?.reservation)
          } else if (exit.value._tag === "Refused") refuseFull(exit.value)
          else {
            const { readings, reservation } = exit.value
            reserved = reservation
            ObjectRules.refusalOf(
              asked,
              ObjectRules.usedBy(target.objects, body?.references ?? []),
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
      const question = questionOf(target, worksLater(request, target), outcome.runs(key.id), now())
      const denied = byPolicy(effective, question)
      if (denied !== undefined) return refuse(new GatewayError(denied), Denied.ofRequest(denied))
      const unread =
        target.settings.body_policies === "skip" || !decides(request, target)
          ? undefined
          : Policy.unread(effective.policy, control.snapshot().layers.of.model.size > 0)
      if (unread !== undefined) return refuse(new GatewayError(unread), Denied.ofUnread(unread, effective))
      const unseen = target.settings.guardrails === "skip" ? undefined : unguarded(effective.guardrails)
      if (unseen !== undefined) return refuse(unseen)
      const destination = destinations.find(target, request.family, key)
      if (Result.isFailure(destination)) return refuse(destination.failure)
      const reader = readerOfBody(request, target)
      if (reader === undefined) return admit(destination.success, undefined)
      const full = limits.full(meters)
      if (full !== undefined) return refuseFull({ _tag: "Refused", reading: full, wanted: 1 })
      let left = false
      // before its body is whole: nothing was had, and that it asked is on record
      hungUp = guarded<void>(() => {
        left = true
        settle(undefined, { status: RequestEnd.clientClosed, error: undefined }, undefined, () =>
          outcome.ended(RequestEnd.left)
        )
      })
      const limit = ofRequests(target.config, effective.policy.max_request_body_bytes)
      /** It counts as a request: reading the body was work, and a key with few requests would have any number of them. */
      const refuseBody = (failure: GatewayError) => {
        const byPolicy = failure.code === "request_body_too_large" && limit.setBy === "this key's policy"
        const denial = byPolicy ? Denied.ofBody(effective) : undefined
        if (failure.status >= 500) return refuse(failure, denial)
        limits.admitUnsafe(
          request.recordId,
          meters(),
          Estimate.requestAlone,
          guarded((exit) => refuse(failure, denial, reservedBy(exit)))
        )
      }
      reader.read(
        request.wire,
        { lease, limit, withinMs: target.config.timeoutMs },
        guarded((received) => {
          if (left) return
          hungUp = noted
          const body = Result.flatMap(received, (bytes) => reader.understand(request.wire, bytes))
          if (Result.isSuccess(body)) admit(destination.success, body.success)
          else refuseBody(body.failure)
        })
      )
    }
    guarded<void>(begin)()
    return () => hungUp()
  }

  const open: WildcardRequests["open"] = (request, target, span, outcome) => {
    const destination = destinations.find(target, request.family, undefined)
    if (Result.isFailure(destination)) {
      outcome.refused(destination.failure)
      return ignored
    }
    const headers = PublicLocation.shown(request.wire.headers, destination.success.base)
    const streamed = {
      request,
      target,
      key: undefined,
      destination: destination.success,
      headers,
      reader: readerOf(target)
    }
    return StreamedRequest.run(upstream, streamed, now, span, outcome)
  }

  return { keyed, open }
})

/** Without a UI that is exposed, only programs come by the wildcard. */
const readerOf = ({ settings }: Wildcard): Reader => (settings.ui_exposure === "disabled" ? "program" : "browser")

const questionOf = (
  { provider, route }: Wildcard,
  worksLater: boolean,
  running: number,
  now: number
): Policy.Question => ({
  route,
  provider,
  worksLater,
  facts: Facts.none,
  // the body is counted while it passes
  requestBytes: 0,
  responseBytes: undefined,
  hourUtc: new Date(now).getUTCHours(),
  running,
  estimatedCostNanos: 0,
  unpricedModels: []
})

/** A body that was read, the objects that it refers to, and what it says of those that the answer makes. */
interface Read {
  readonly bytes: Buffer
  readonly references: Facts.Facts["references"]
  readonly making?: Making
}

/** How a body is read for the objects that it refers to. */
interface BodyReader {
  readonly read: typeof RequestBody.readJson
  readonly understand: (wire: Wire, bytes: Buffer) => Result.Result<Read, GatewayError>
}

/**
 * `undefined`: the body streams through, because no key owns objects, or because it brings contents alone, as uploads
 * do. Administration names objects of all keys.
 */
const readerOfBody = ({ wire }: Request.Request, { config, objects, target }: Wildcard): BodyReader | undefined => {
  if (config.ownership === "shared" || objects._tag === "Unclear" || !StreamedRequest.bringsBody(wire)) return undefined
  const multipart = isForm(wire)
  if (objects._tag === "None") {
    return multipart || UpstreamPaths.sensitiveGroup(pathOf(target)) !== undefined ? undefined : readers.any
  }
  const form = formOf(objects)
  return multipart && form === "contents" ? undefined : multipart && form === "request" ? readers.form : readers.json
}

const pathOf = (target: string): string => target.split("?", 1)[0]!

const isForm = ({ headers }: Wire): boolean =>
  Headers.all(headers, "content-type").every((type) => /^multipart\/form-data\s*(?:;|$)/i.test(type)) &&
  Headers.get(headers, "content-type") !== undefined

/** Refuses what two readers could understand differently, as on the gateway's own routes. */
const understood: BodyReader["understand"] = (_, bytes) =>
  bytes.length === 0
    ? Result.succeed({ bytes, references: [] })
    : Result.mapBoth(Facts.parse("compat", bytes), {
        onFailure: (problem) => new GatewayError(problem),
        onSuccess: ({ facts }) => ({ bytes, references: facts.references, making: facts })
      })

/** The same of a form, of which only what names objects is read. */
const understoodForm: BodyReader["understand"] = (wire, bytes) =>
  Form.read(Headers.get(wire.headers, "content-type") ?? "", bytes, new Set(Facts.fieldNames("compat"))).pipe(
    Result.mapError((message) => new GatewayError({ code: "invalid_request_body", message })),
    Result.flatMap((form) => Result.mapError(Facts.ofForm("compat", form), (problem) => new GatewayError(problem))),
    Result.map(({ references }): Read => ({ bytes, references }))
  )

/** The same of a body that may be anything, whatever it is called: what is no JSON and no form refers to nothing. */
const understoodAny: BodyReader["understand"] = (wire, bytes) => {
  if (BodyLabels.isUrlEncoded(wire.headers) && !BodyLabels.beginsAsJson(bytes)) return understoodForm(wire, bytes)
  const json = Facts.readJson(bytes)
  if (Result.isSuccess(json) && Predicate.isObject(json.success.json)) return understood(wire, bytes)
  if (Result.isSuccess(json)) {
    return Result.succeed({ bytes, references: referredTo(json.success.text, json.success.json) })
  }
  const { problem } = json.failure
  return BodyLabels.beginsAsJson(bytes)
    ? Result.fail(new GatewayError(problem))
    : Result.succeed({ bytes, references: [] })
}

const readers = {
  json: { read: RequestBody.readJson, understand: understood },
  form: { read: RequestBody.readAny, understand: understoodForm },
  any: { read: RequestBody.readAny, understand: understoodAny }
} as const

/**
 * Whether the request asks for something that a policy looks for in bodies: by one, by a query that some upstreams would
 * take for one, by a path that names a model, or by one that begins work (as it resumes a job).
 */
const decides = ({ wire }: Request.Request, { target }: Wildcard): boolean => {
  if (StreamedRequest.bringsBody(wire) || Query.deciding(target, Facts.decidingMembers) !== undefined) return true
  if (wire.method !== "POST") return false
  const { models, unjudged } = NamedModels.inPath(target)
  return models.length > 0 || unjudged !== undefined || CompatPaths.workOf(target) === "later"
}

/**
 * Whether the request has the upstream do work whose models and tokens nobody here sees, as a batch of an uploaded file
 * does: the requests in it would have to keep to the limits of the governed routes, and nothing of it is counted here.
 */
const worksLater = ({ wire }: Request.Request, { settings, target }: Wildcard): boolean =>
  settings.body_policies !== "skip" && wire.method === "POST" && CompatPaths.workOf(target) === "later"

const unseenBy = (guardrail: string): GatewayError =>
  new GatewayError({
    code: "policy_denied",
    message: `This key is under the guardrail ${guardrail}, which cannot look into what passes here. Use a route that the gateway reads, or ask an operator to set guardrails to skip in the passthrough settings.`
  })

const ignored: RequestEnd.HungUp = () => {}

const unaccounted = {
  facts: Facts.none,
  guardrails: undefined,
  bill: Billing.nothing,
  provider: "upstream",
  fallbackCount: 0
} as const

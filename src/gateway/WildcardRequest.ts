import { Cause, Clock, Effect, Exit, Option, Result } from "effect"
import { Upstream } from "../services/Upstream.ts"
import * as Billing from "./Billing.ts"
import { BodyAdmission } from "./BodyAdmission.ts"
import { ControlState } from "./ControlState.ts"
import * as Denied from "./Denied.ts"
import { Destinations } from "./Destination.ts"
import { GatewayError } from "./GatewayError.ts"
import { controlStateUnavailable, queueFull } from "./GovernedRequest.ts"
import { Guarding } from "./Guarding.ts"
import * as Headers from "./Headers.ts"
import type { KeyRecord } from "./KeyRecord.ts"
import { Limits, type Reading, type Reservation } from "./Limits.ts"
import * as Meters from "./Meters.ts"
import type { Reader } from "./model/AnswerHeaders.ts"
import { strictest } from "./model/BodyLimit.ts"
import * as Facts from "./model/Facts.ts"
import type { GuardrailPolicy } from "./model/GuardrailPolicy.ts"
import * as Policy from "./model/Policy.ts"
import * as Query from "./model/Query.ts"
import { takesUploads, type UpstreamObject } from "./model/UpstreamObjects.ts"
import { ObjectOwners } from "./ObjectOwners.ts"
import * as ObjectRules from "./ObjectRules.ts"
import * as PublicLocation from "./PublicLocation.ts"
import * as Request from "./Request.ts"
import * as RequestBody from "./RequestBody.ts"
import * as StreamedRequest from "./StreamedRequest.ts"
import type { Wildcard } from "./Target.ts"
import { UsageLog } from "./UsageLog.ts"
import * as UsageRecord from "./UsageRecord.ts"
import type { Wire } from "./Wire.ts"

/**
 * A path that no other route took. Path, query and bodies go on as they came, up to the settings' limits. Only where
 * upstreams keep objects is a body read, for the objects that it refers to, and a list. The key's policy holds as far as it can be held that way: `deny`, the route, the
 * provider, the hours, sizes, and requests per minute and day. A request whose policy needs more than that is refused,
 * unless the settings let it go without. Tokens and money are not counted here.
 */
export interface WildcardRequests {
  /** With a gateway key: its upstream credential, and a record of the status alone. */
  readonly keyed: (
    request: Request.Request,
    target: Wildcard,
    key: KeyRecord,
    outcome: Request.Outcome
  ) => Request.HungUp
  /** From a trusted ingress, for a browser that has no key: the provider's own credential, and no record. */
  readonly open: (request: Request.Request, target: Wildcard, outcome: Request.Outcome) => Request.HungUp
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
  const metersOf = Meters.remembering()
  const countingRequests = Meters.countingRequests()

  /** Why the key's guardrails keep the request from going where none can look at it. */
  const unguarded = (policy: GuardrailPolicy): GatewayError | undefined => {
    const selected = guarding.selectedBy(policy)
    if (Result.isFailure(selected)) return new GatewayError(selected.failure)
    const [first] = selected.success
    return first && unseenBy(first.definition.name)
  }

  const keyed: WildcardRequests["keyed"] = (request, target, key, outcome) => {
    if (!usageLog.hasRoom()) {
      outcome.refused(queueFull)
      return ignored
    }
    const asked: ObjectRules.Asked = { owners, target, key }
    const effective = control.policyOf(key, target.route, [])
    const lease = admission.lease(key.id)
    const failed = (defect: unknown) => {
      lease.release()
      outcome.failed(defect)
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
      denial: Denied.Denied | undefined,
      then: () => void
    ) => {
      lease.release()
      const account = { ...unaccounted, ...came, request, target, key, denial, policy: effective, endedAt: now() }
      usageLog.settle(reservation, Billing.nothing.settled, UsageRecord.of(account), guarded<void>(then))
    }
    const refuse = (
      error: GatewayError,
      denial?: Denied.Denied,
      reservation?: Reservation,
      readings: ReadonlyArray<Reading> = []
    ) =>
      settle(reservation, { status: error.status, error }, denial, () => {
        Request.refuse(request, error, readings, now())
        outcome.ended({ status: error.status, error, streamed: false, aborted: false, bill: Billing.nothing })
      })

    const question = questionOf(target, outcome.runs(key.id), now())
    const decision = Policy.decide(effective.policy, question)
    if (decision._tag === "Denied") {
      refuse(new GatewayError(decision.denial), Denied.ofRequest(decision.denial, effective, question))
      return ignored
    }
    const unread =
      target.settings.body_policies === "skip" || !decidesByBody(request, target)
        ? undefined
        : Policy.unread(effective.policy, control.snapshot().layers.of.model.size > 0)
    if (unread !== undefined) {
      refuse(new GatewayError(unread), Denied.ofUnread(unread, effective))
      return ignored
    }
    const unseen = target.settings.guardrails === "skip" ? undefined : unguarded(effective.guardrails)
    if (unseen !== undefined) {
      refuse(unseen)
      return ignored
    }
    const destination = destinations.find(target, key)
    if (Result.isFailure(destination)) {
      refuse(destination.failure)
      return ignored
    }
    let gone = false
    const noted = () => {
      gone = true
    }
    let hungUp: Request.HungUp = noted
    const send = (body: Read | undefined, reservation: Reservation, readings: ReadonlyArray<Reading>) => {
      const settled = (came: Came, then: () => void) => settle(reservation, came, undefined, then)
      if (gone) {
        settled({ status: Request.clientClosed, error: undefined }, () => outcome.ended(Request.left))
        return
      }
      const admitted = { policy: effective.policy, readings }
      const watch = ObjectRules.watchOf(target.objects, request.wire.method, (objects) =>
        owners.remember(target.provider, objects, key, () => {})
      )
      const leaves = ObjectRules.listFilter(asked)
      const streamed: StreamedRequest.Streamed = {
        request,
        target,
        key,
        destination: destination.success,
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
          const objects = watch?.objects() ?? []
          const end = () => settled(objects.length === 0 ? came : { ...came, objects }, then)
          // who reads an id may use it at once
          const untold = watch?.untold() ?? []
          if (untold.length === 0) end()
          else owners.remember(target.provider, untold, key, guarded<void>(end))
        }
      }
      hungUp = StreamedRequest.run(upstream, streamed, now, { ...outcome, failed })
    }
    const admit = (body: Read | undefined) =>
      limits.admit(
        request.recordId,
        countingRequests(metersOf(effective, (effective) => control.limitScopes(key, effective), now())),
        nothingWanted,
        guarded((exit) => {
          if (Exit.isFailure(exit)) {
            const unavailable = Option.getOrUndefined(Exit.findErrorOption(exit))
            fork(
              Effect.logWarning("limits cannot be checked", { cause: unavailable?.cause ?? Cause.squash(exit.cause) })
            )
            refuse(controlStateUnavailable, undefined, unavailable?.reservation)
          } else if (exit.value._tag === "Refused") {
            const { reading, wanted } = exit.value
            refuse(
              Meters.refusal(reading.meter, reading.used, wanted, now()),
              Denied.ofLimit(reading.meter),
              undefined,
              [reading]
            )
          } else {
            const { readings, reservation } = exit.value
            ObjectRules.refusalOf(
              asked,
              ObjectRules.usedBy(target.objects, body?.references ?? []),
              guarded((refusal) =>
                refusal === undefined
                  ? send(body, reservation, readings)
                  : refuse(refusal, undefined, reservation, readings)
              )
            )
          }
        })
      )
    if (!readsBody(request, target)) {
      admit(undefined)
      return () => hungUp()
    }
    let left = false
    // before its body is whole: nothing was had, and that it asked is on record
    hungUp = guarded<void>(() => {
      left = true
      settle(undefined, { status: Request.clientClosed, error: undefined }, undefined, () =>
        outcome.ended(Request.left)
      )
    })
    const limit = strictest(target.config.maxRequestBodyBytes, effective.policy.max_request_body_bytes)
    RequestBody.readJson(
      request.wire,
      { lease, limit, withinMs: target.config.timeoutMs },
      guarded((received) => {
        if (left) return
        hungUp = noted
        const body = Result.flatMap(received, understood)
        if (Result.isSuccess(body)) return admit(body.success)
        const byPolicy = body.failure.code === "request_body_too_large" && limit.setBy !== "the route"
        refuse(body.failure, byPolicy ? Denied.ofBody(effective) : undefined)
      })
    )
    return () => hungUp()
  }

  const open: WildcardRequests["open"] = (request, target, outcome) => {
    const destination = destinations.find(target, undefined)
    if (Result.isFailure(destination)) {
      outcome.refused(destination.failure)
      return ignored
    }
    const headers = PublicLocation.shown(request.wire.headers, destination.success.origin)
    const streamed = {
      request,
      target,
      key: undefined,
      destination: destination.success,
      headers,
      reader: readerOf(target)
    }
    return StreamedRequest.run(upstream, streamed, now, outcome)
  }

  return { keyed, open }
})

/** Without a UI that is exposed, only programs come by the wildcard. */
const readerOf = ({ settings }: Wildcard): Reader => (settings.ui_exposure === "disabled" ? "program" : "browser")

const questionOf = ({ provider, route }: Wildcard, running: number, now: number): Policy.Question => ({
  route,
  provider,
  facts: Facts.none,
  // the body is counted while it passes
  requestBytes: 0,
  responseBytes: undefined,
  hourUtc: new Date(now).getUTCHours(),
  running,
  estimatedCostNanos: 0,
  unpricedModels: []
})

/** A body that was read, and the objects that it refers to. */
interface Read {
  readonly bytes: Buffer
  readonly references: Facts.Facts["references"]
}

/** Whether a body may refer to objects that belong to somebody. A form that uploads something does not. */
const readsBody = ({ wire }: Request.Request, { config, objects }: Wildcard): boolean =>
  config.ownership !== "shared" &&
  objects._tag !== "None" &&
  objects._tag !== "Unclear" &&
  StreamedRequest.bringsBody(wire) &&
  !(takesUploads(objects) && isForm(wire))

const isForm = ({ headers }: Wire): boolean =>
  Headers.all(headers, "content-type").every((type) => /^multipart\/form-data\s*(?:;|$)/i.test(type)) &&
  Headers.get(headers, "content-type") !== undefined

/** Refuses what two readers could understand differently, as on the gateway's own routes. */
const understood = (bytes: Buffer): Result.Result<Read, GatewayError> =>
  bytes.length === 0
    ? Result.succeed({ bytes, references: [] })
    : Result.mapBoth(Facts.parse("compat", bytes), {
        onFailure: (problem) => new GatewayError(problem),
        onSuccess: ({ facts: { references } }) => ({ bytes, references })
      })

/** Whether the request asks for something by a body, or by a query that some upstreams would take for one. */
const decidesByBody = ({ wire }: Request.Request, { target }: Wildcard): boolean =>
  StreamedRequest.bringsBody(wire) || Query.deciding(target, Facts.decidingMembers) !== undefined

const unseenBy = (guardrail: string): GatewayError =>
  new GatewayError({
    code: "policy_denied",
    message: `This key is under the guardrail ${guardrail}, which cannot look into what passes here. Use a route that the gateway reads, or ask an operator to set guardrails to skip in the passthrough settings.`
  })

const nothingWanted = { tokens: 0, inputTokens: 0, nanos: 0, nanosGuessed: false }

const ignored: Request.HungUp = () => {}

const unaccounted = {
  facts: Facts.none,
  guardrails: undefined,
  bill: Billing.nothing,
  provider: "upstream",
  fallbackCount: 0
} as const

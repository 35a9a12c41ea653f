import { Cause, Effect, Exit, type Fiber, Option, Result } from "effect"
import { exceededUnusedDays, refusalOf } from "../policy/KeyState.ts"
import type { PolicyRoute } from "../policy/routes/CanonicalRoute.ts"
import * as FairShare from "../services/FairShare.ts"
import type { LogThrottle } from "../services/LogThrottle.ts"
import { isMistyped } from "../state/Secret.ts"
import * as Authentication from "./auth/Authentication.ts"
import type * as CallerAuth from "./auth/CallerAuth.ts"
import type { Identity } from "./auth/Identity.ts"
import type { IdentityVerifier } from "./auth/IdentityVerifier.ts"
import { KeyDigests } from "./auth/KeyDigests.ts"
import * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import { controlStateUnavailable, GatewayError } from "./GatewayError.ts"
import type * as Request from "./request/Request.ts"
import type { ControlState } from "./snapshot/ControlState.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import type * as Tracing from "./telemetry/Tracing.ts"

interface AuthenticationServices {
  readonly control: ControlState["Service"]
  readonly identityVerifier: IdentityVerifier["Service"]
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  readonly logThrottle: LogThrottle
  readonly now: () => number
}

export class RequestAuthentication {
  readonly #services: AuthenticationServices
  readonly #keyDigests = new KeyDigests()

  constructor(services: AuthenticationServices) {
    this.#services = services
  }

  /** Finds the gateway key of `secret` and calls `then` if the key may be used. A cached key is found synchronously. */
  authenticate(
    secret: string,
    request: Request.Request,
    route: PolicyRoute,
    span: Tracing.Span,
    lifecycle: RequestLifecycle.RequestLifecycle,
    then: (key: KeyRecord) => RequestLifecycle.OnDisconnect
  ): RequestLifecycle.OnDisconnect {
    const { control, fork, logThrottle, now } = this.#services
    const digest = this.#keyDigests.of(request.wire.connection, secret)
    const continueIfValid = (key: KeyRecord): RequestLifecycle.OnDisconnect => {
      lifecycle.keyFound(key)
      const reason = refusalOf(key, now())
      if (reason === undefined) return then(key)
      lifecycle.refuse(new GatewayError(reason))
      return noop
    }
    const lookUp = (
      lookingUp: ReturnType<typeof control.findKey>,
      onFound: typeof continueIfValid
    ): RequestLifecycle.OnDisconnect =>
      this.#awaitUnlessDisconnected(lookingUp, span.startPhase("gateway.auth.verify"), lifecycle, (exit) => {
        if (Exit.isFailure(exit)) {
          const cause = Cause.squash(exit.cause)
          fork(
            logThrottle("gateway key lookup failed; the request is refused", (suppressed) =>
              Effect.logWarning("gateway key lookup failed; the request is refused", { cause, ...suppressed })
            )
          )
          lifecycle.refuse(controlStateUnavailable)
        } else if (Option.isNone(exit.value)) lifecycle.refuse(Authentication.unknownKey)
        else return onFound(exit.value.value)
        return noop
      })
    const retireIfUnused =
      (then: typeof continueIfValid) =>
      (key: KeyRecord): RequestLifecycle.OnDisconnect => {
        const days = exceededUnusedDays(key, control.policyOf(key, route, []).policy, now())
        if (days === undefined || refusalOf(key, now()) !== undefined) return continueIfValid(key)
        return lookUp(control.retireUnusedKey(digest, key, days, request.requestId), then)
      }
    // Check twice. The first check may reload the key, and the reloaded key may also have been unused for too long.
    const first = retireIfUnused(retireIfUnused(continueIfValid))
    const cached = control.cachedKey(digest)
    if (cached !== undefined) return first(cached)
    if (!isMistyped(secret))
      return lookUp(control.findKey(digest, FairShare.callerOfAddress(request.wire.address)), first)
    lifecycle.refuse(Authentication.unknownKey)
    return noop
  }

  /** Verifies the identity token or the signed identity headers. A cached token is verified synchronously. */
  identify(
    { wire }: Request.Request,
    callerAuth: CallerAuth.CallerAuth,
    span: Tracing.Span,
    lifecycle: RequestLifecycle.RequestLifecycle,
    then: (identity: Identity) => RequestLifecycle.OnDisconnect
  ): RequestLifecycle.OnDisconnect {
    const { identityVerifier, now } = this.#services
    const continueIfVerified = (result: Result.Result<Identity, GatewayError>): RequestLifecycle.OnDisconnect => {
      if (Result.isSuccess(result)) return then(result.success)
      lifecycle.refuse(result.failure)
      return noop
    }
    const verified = identityVerifier.verifySync(wire.headers, callerAuth, now())
    if (verified !== undefined) return continueIfVerified(verified)
    const verifying = Effect.result(identityVerifier.verify(wire.headers, callerAuth))
    return this.#awaitUnlessDisconnected(verifying, span.startPhase("gateway.auth.identity"), lifecycle, (exit) => {
      if (Exit.isSuccess(exit)) return continueIfVerified(exit.value)
      lifecycle.fail(Cause.squash(exit.cause))
      return noop
    })
  }

  /** Runs `effect` and then `then`. If the client disconnects first, the request ends and `then` is not called. */
  #awaitUnlessDisconnected<A, E>(
    effect: Effect.Effect<A, E>,
    phase: Tracing.Phase,
    lifecycle: RequestLifecycle.RequestLifecycle,
    then: (exit: Exit.Exit<A, E>) => RequestLifecycle.OnDisconnect
  ): RequestLifecycle.OnDisconnect {
    let disconnected = false
    let onDisconnect: RequestLifecycle.OnDisconnect = () => {
      disconnected = true
      lifecycle.end(RequestLifecycle.clientClosedOutcome)
    }
    this.#services.fork(phase.run(effect)).addObserver((exit) => {
      phase.end()
      if (disconnected) return
      onDisconnect = noop
      try {
        onDisconnect = then(exit)
      } catch (defect) {
        lifecycle.fail(defect)
      }
    })
    return () => onDisconnect()
  }
}

const noop: RequestLifecycle.OnDisconnect = () => {}

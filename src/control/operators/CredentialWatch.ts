import { Effect, type Scope as Scopes } from "effect"
import { HttpServerRequest } from "effect/http"
import * as LogThrottle from "../../services/LogThrottle.ts"
import { digestHex } from "../../state/Secret.ts"
import type { ControlError, ErrorCode } from "../api/schema/Errors.ts"
import type { Scope } from "../api/schema/Security.ts"
import { CountsAsUse } from "../session/Sessions.ts"
import { authenticate, authenticationServices } from "./Authentication.ts"

/** The credentials of a request that is served for long. */
export interface Credentials {
  /** Equal for requests with the same credentials. */
  readonly id: string
  /** The scopes that the credentials have now. Fails if they are no longer valid. */
  readonly scopes: Effect.Effect<ReadonlyArray<Scope>, ControlError>
}

export interface Watched {
  readonly credentials: Credentials
  readonly isAllowed: (scopes: ReadonlyArray<Scope>) => boolean
  readonly onLost: (message: string) => void
}

/** A stream of revoked credentials ends within this time. */
const checkEveryMs = 2_000
const checkTimeout = "5 seconds"

/** These say nothing of the credentials. */
const unansweredCodes: ReadonlySet<ErrorCode> = new Set(["store_unavailable", "internal_error"])

const scopesLost = "The operator token no longer has the scopes that this needs."

/**
 * Checks credentials again for as long as something is served to them. Equal ones are checked once. While the database
 * does not respond, nobody loses anything.
 */
export const make = Effect.gen(function* () {
  const watched = new Set<Watched>()
  const logFailure = yield* LogThrottle.makePerMinute

  const check = (equal: ReadonlyArray<Watched>) => {
    const [first] = equal
    if (first === undefined) return Effect.void
    return first.credentials.scopes.pipe(
      Effect.map((scopes) => ({ lost: equal.filter(({ isAllowed }) => !isAllowed(scopes)), message: scopesLost })),
      Effect.catch(({ code, message }) => Effect.succeed({ lost: unansweredCodes.has(code) ? [] : equal, message })),
      Effect.timeout(checkTimeout),
      Effect.flatMap(({ lost, message }) =>
        Effect.sync(() => {
          for (const { onLost } of lost) onLost(message)
        })
      ),
      Effect.catchCause((cause) =>
        logFailure((suppressed) =>
          Effect.logWarning(`The credentials of open streams could not be checked again${suppressed}`, cause)
        )
      )
    )
  }

  yield* Effect.suspend(() =>
    Effect.forEach(Map.groupBy(watched, ({ credentials }) => credentials.id).values(), check, {
      concurrency: 4,
      discard: true
    })
  ).pipe(Effect.andThen(Effect.sleep(checkEveryMs)), Effect.forever, Effect.forkScoped)

  /** Watches for the lifetime of the scope. */
  return (one: Watched): Effect.Effect<void, never, Scopes.Scope> =>
    Effect.asVoid(
      Effect.acquireRelease(
        Effect.sync(() => watched.add(one)),
        () => Effect.sync(() => watched.delete(one))
      )
    )
})

/** Makes the credentials of the current request. To check them again does not count as use of a session. */
export const credentialsOfRequest = Effect.map(authenticationServices, (services) =>
  Effect.map(
    HttpServerRequest.HttpServerRequest,
    (request): Credentials => ({
      id: digestHex(`${request.headers["authorization"]} ${request.headers["cookie"]}`),
      scopes: authenticate.pipe(
        Effect.map((operator) => operator.scopes),
        Effect.provideService(HttpServerRequest.HttpServerRequest, request),
        Effect.provideContext(services),
        Effect.provideService(CountsAsUse, false)
      )
    })
  )
)

import { Context, Effect, Layer, Option, type Redacted, Result } from "effect"
import type { RoutedRequest } from "../../policy/Routing.ts"
import { canonicalRoutes, type Family, type PolicyRoute } from "../../policy/routes/CanonicalRoute.ts"
import { authorizationBearer, type CredentialStyle } from "../../policy/routes/CredentialStyle.ts"
import { StartupUpstreams } from "../../policy/routes/StartupUpstreams.ts"
import { resolve, type StoredCredential } from "../../policy/routes/StoredCredential.ts"
import * as UpstreamBase from "../../policy/routes/UpstreamBase.ts"
import * as UpstreamChoice from "../../policy/routes/UpstreamChoice.ts"
import { vendorOf } from "../../policy/routes/Vendor.ts"
import type { RegisteredService } from "../../policy/ServiceTable.ts"
import { Conditions } from "../../process/Conditions.ts"
import { GatewaySettings } from "../../process/GatewaySettings.ts"
import { GatewayError } from "../GatewayError.ts"
import { ControlState } from "../snapshot/ControlState.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import { type Upstreams, upstreamsOf } from "./Upstreams.ts"

export interface Destination {
  readonly base: UpstreamBase.UpstreamBase
  readonly target: string
  readonly style: CredentialStyle
  /** Lower-case names of custom headers that carry upstream credentials. Client headers of these names are removed. */
  readonly credentialHeaders: ReadonlyArray<string>
  readonly credential: Redacted.Redacted
  /** True if the upstream is a model vendor, which must not receive key, project or task ids. */
  readonly isVendor: boolean
}

export class Destinations extends Context.Service<
  Destinations,
  {
    /**
     * Without `key` the provider's own credential applies. `clientFamily` decides on paths that serve both families.
     */
    readonly find: (
      target: RoutedRequest,
      clientFamily: Family,
      key: KeyRecord | undefined
    ) => Result.Result<Destination, GatewayError>
    /** Returns the upstream for a request that carries the client's own upstream credential. */
    readonly findDelegated: (
      target: RoutedRequest,
      clientFamily: Family,
      credential: Redacted.Redacted
    ) => Result.Result<Destination, GatewayError>
  }
>()("svc/gateway/Destinations") {
  static readonly layer = Layer.effect(
    Destinations,
    Effect.gen(function* () {
      const control = yield* ControlState
      const { directCompat } = yield* GatewaySettings
      const startup = yield* StartupUpstreams
      let current = upstreamsOf(startup, control.snapshot())
      const upstreams = (): Upstreams => {
        const snapshot = control.snapshot()
        if (snapshot !== current.snapshot) current = upstreamsOf(startup, snapshot)
        return current
      }

      const conditions = yield* Effect.serviceOption(Conditions)
      if (Option.isSome(conditions)) {
        for (const family of ["a", "b"] as const) {
          conditions.value.register(() => {
            const upstream = upstreams()[family]
            const status = upstream === undefined ? "none" : upstream === "unreadable" ? upstream : upstream.source
            return { name: `upstream_${vendorOf(family)}`, status, ok: status !== "unreadable" }
          })
        }
      }

      const findUpstream = (
        inForce: Upstreams,
        target: RoutedRequest,
        clientFamily: Family
      ): Result.Result<UpstreamChoice.ChosenUpstream, GatewayError> => {
        const family = familyByRoute.get(target.route) ?? clientFamily
        const upstream = inForce[family]
        if (upstream === "unreadable") return Result.fail(unreadableProvider)
        return upstream === undefined ? Result.fail(missingUpstreamByFamily[family]) : Result.succeed(upstream)
      }

      const legacy = UpstreamChoice.legacyOriginOf(startup)

      const destinationOutsideRows = (
        base: UpstreamBase.UpstreamBase,
        target: RoutedRequest,
        credential: Redacted.Redacted
      ) => destinationAt(upstreams(), { base, style: authorizationBearer, isVendor: false }, target, credential)

      const serviceDestination = (
        target: RoutedRequest,
        { credential, origin }: RegisteredService
      ): Result.Result<Destination, GatewayError> =>
        origin === undefined
          ? Result.fail(missingCredential)
          : Result.flatMap(usableCredential(credential), (secret) =>
              destinationOutsideRows(UpstreamBase.atRoot(origin), target, secret)
            )

      return Destinations.of({
        findDelegated: (target, clientFamily, credential) => {
          const inForce = upstreams()
          return Result.flatMap(findUpstream(inForce, target, clientFamily), (upstream) =>
            destinationAt(inForce, upstream, target, credential)
          )
        },
        find: (target, clientFamily, key) => {
          if (target.service !== undefined) return serviceDestination(target, target.service.service)
          if (target.provider === "compat") {
            return Option.match(directCompat, {
              onNone: () => Result.fail(missingCompatUpstream),
              onSome: ({ base, serviceKey }) => destinationOutsideRows(base, target, serviceKey)
            })
          }
          const inForce = upstreams()
          return Result.flatMap(findUpstream(inForce, target, clientFamily), (upstream) => {
            const origins = { inUse: inForce.origins, legacy }
            const order = UpstreamChoice.credentialOrder(upstream, origins, key?.keyMapping, key?.projectMapping)
            return Result.flatMap(usableCredential(resolve(order, upstream.base.origin)), (credential) =>
              destinationAt(inForce, upstream, target, credential)
            )
          })
        }
      })
    })
  )
}

/** The routes that serve one family. `/v1/models` and passthrough paths serve both families. */
const familyByRoute: ReadonlyMap<PolicyRoute, Family> = new Map(
  canonicalRoutes
    .filter(({ pattern }) => !pattern.startsWith("/v1/models"))
    .map(({ family, pattern }) => [pattern, family])
)

const destinationAt = (
  { credentialHeaders }: Upstreams,
  { base, isVendor, style }: Pick<Destination, "base" | "style" | "isVendor">,
  { route, target }: RoutedRequest,
  credential: Redacted.Redacted
): Result.Result<Destination, GatewayError> => {
  const upstreamTarget = UpstreamBase.targetAt(base, target)
  if (upstreamTarget === undefined || (isUngoverned(route) && UpstreamBase.reachesForbiddenPath(base, target))) {
    return Result.fail(outsideBase)
  }
  return Result.succeed({ base, target: upstreamTarget, style, credentialHeaders, credential, isVendor })
}

const isUngoverned = (route: PolicyRoute): boolean => route === "/upstream/*" || route === "/providers/compat/*"

const usableCredential = (stored: StoredCredential): Result.Result<Redacted.Redacted, GatewayError> => {
  switch (stored._tag) {
    case "Present":
      return Result.succeed(stored.credential)
    case "Missing":
      return Result.fail(missingCredential)
    case "Unreadable":
      return Result.fail(unreadableCredential)
    case "OtherOrigin":
      return Result.fail(credentialOriginMismatch)
  }
}

const missingUpstream = (family: string, variable: string) =>
  new GatewayError({
    code: "invalid_configuration",
    message: `No upstream for ${family} requests is configured. An operator can add a provider row, or set ${variable} or UPSTREAM_BASE_URL.`
  })

const missingCredential = new GatewayError({
  code: "invalid_configuration",
  message:
    "No upstream credential is configured for this key, its project or the provider, and no variable sets one (UPSTREAM_SERVICE_KEY, UPSTREAM_OPENAI_SERVICE_KEY, UPSTREAM_ANTHROPIC_SERVICE_KEY). An operator can set one."
})

const outsideBase = new GatewayError({
  code: "unsupported_route",
  message:
    "Only paths below /v1 exist at the base URL of the upstream. Use such a path, or ask an operator to change the base URL."
})

const missingUpstreamByFamily: Readonly<Record<Family, GatewayError>> = {
  a: missingUpstream("OpenAI", "UPSTREAM_OPENAI_BASE_URL"),
  b: missingUpstream("Anthropic", "UPSTREAM_ANTHROPIC_BASE_URL")
}

const unreadableProvider = new GatewayError({
  code: "invalid_configuration",
  message:
    "This version of the gateway cannot decode the provider row that defines the upstream, so it refuses all requests to that upstream. An operator finds the row in the log, and can update the gateway, or disable or replace the row."
})

const unreadableCredential = new GatewayError({
  code: "invalid_configuration",
  message: "The upstream credential for this request cannot be decrypted. An operator finds the reason in the log."
})

const credentialOriginMismatch = new GatewayError({
  code: "invalid_configuration",
  message:
    "The credential for this request was stored for another address than the upstream's current address, so the gateway does not send it. An operator can store the credential again for the current address. A service key in a variable is sent only to the upstream that the variables name."
})

const missingCompatUpstream = new GatewayError({
  code: "invalid_configuration",
  message:
    "The direct compatible upstream is not configured. An operator can set DIRECT_COMPAT_BASE_URL and DIRECT_COMPAT_SERVICE_KEY."
})

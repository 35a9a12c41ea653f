import { Context, Effect, Layer, Option, type Redacted, Result } from "effect"
import type { RoutedRequest } from "../../policy/Routing.ts"
import { canonicalRoutes, type Family, type PolicyRoute } from "../../policy/routes/CanonicalRoute.ts"
import { authorizationBearer, type CredentialStyle, styleOfFamily } from "../../policy/routes/CredentialStyle.ts"
import { type StartupUpstream, StartupUpstreams } from "../../policy/routes/StartupUpstreams.ts"
import {
  type BoundCredential,
  ofEnvironment,
  resolve,
  type StoredCredential,
  unbound
} from "../../policy/routes/StoredCredential.ts"
import * as UpstreamBase from "../../policy/routes/UpstreamBase.ts"
import { vendorOf } from "../../policy/routes/Vendor.ts"
import type { RegisteredService } from "../../policy/ServiceTable.ts"
import { Conditions } from "../../process/Conditions.ts"
import { GatewaySettings } from "../../process/GatewaySettings.ts"
import { GatewayError } from "../GatewayError.ts"
import { ControlState } from "../snapshot/ControlState.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { Snapshot } from "../snapshot/Snapshot.ts"

/** The upstream of a request, and how the gateway identifies itself there. */
export interface Destination {
  readonly base: UpstreamBase.UpstreamBase
  /** Path and query there. */
  readonly target: string
  readonly style: CredentialStyle
  /** The headers that provider rows put their credentials in, lower case: no client's comes through them. */
  readonly credentialHeaders: ReadonlyArray<string>
  readonly credential: Redacted.Redacted
  /** It serves one family, as vendors of models do: it learns nothing of keys, projects and tasks. */
  readonly isVendor: boolean
}

export class Destinations extends Context.Service<
  Destinations,
  {
    /**
     * Without a key the provider's own credential is used. `asked`: the family that the client speaks, for paths that
     * both have.
     */
    readonly find: (
      target: RoutedRequest,
      asked: Family,
      key: KeyRecord | undefined
    ) => Result.Result<Destination, GatewayError>
    /** Direct mode: the client's own upstream credential, in the header that the provider row asks for. */
    readonly findDelegated: (
      target: RoutedRequest,
      asked: Family,
      credential: Redacted.Redacted
    ) => Result.Result<Destination, GatewayError>
  }
>()("svc/gateway/Destinations") {
  static readonly layer = Layer.effect(
    Destinations,
    Effect.gen(function* () {
      const control = yield* ControlState
      const { directCompat } = yield* GatewaySettings
      const upstreams = yield* StartupUpstreams
      /** A row comes before the environment, and within each of them an upstream of the family's own before one of both. */
      const upstreamOf = ({ providers }: Snapshot, family: Family): UpstreamLookup => {
        const rowOfFamily = providers.get(family)
        const row = rowOfFamily ?? providers.get("both")
        if (row === "unreadable") return row
        if (row !== undefined) {
          const { base, credential, style } = row
          return {
            base,
            style,
            isVendor: rowOfFamily !== undefined,
            ownCredential: credential,
            startupCredential: startupCredential(family, base.origin),
            source: "provider_row"
          }
        }
        const own = Option.getOrUndefined(upstreams[family])
        const named = own ?? Option.getOrUndefined(upstreams.both)
        if (named === undefined) return undefined
        const style = own === undefined ? authorizationBearer : styleOfFamily[family]
        return {
          base: named.base,
          style,
          isVendor: own !== undefined,
          ownCredential: unbound,
          startupCredential: startupCredential(family, named.base.origin),
          source: named.name
        }
      }

      /** The environment's credential for the origin; else one of another origin, for which it is refused there. */
      const startupCredential = (family: Family, origin: string): BoundCredential => {
        const keys = [upstreams[family], upstreams.both]
          .flatMap(Option.toArray)
          .filter(({ serviceKey }) => Option.isSome(serviceKey))
        const found = keys.find(({ base }) => base.origin === origin) ?? keys.find(({ name }) => name !== "simulator")
        return found === undefined ? unbound : ofEnvironment(found.serviceKey, found.base.origin)
      }

      const upstreamsOf = (snapshot: Snapshot): Upstreams => {
        const [a, b] = [upstreamOf(snapshot, "a"), upstreamOf(snapshot, "b")]
        const ownHeaders = [...snapshot.providers.values()].flatMap((row) =>
          row !== "unreadable" && row.style._tag === "CustomHeader" ? [row.style.name.toLowerCase()] : []
        )
        const origins = [a, b].flatMap((place) =>
          place === undefined || place === "unreadable" ? [] : [place.base.origin]
        )
        return { snapshot, a, b, credentialHeaders: ownHeaders, origins: new Set(origins) }
      }

      let current = upstreamsOf(control.snapshot())
      const places = (): Upstreams => {
        const snapshot = control.snapshot()
        if (snapshot !== current.snapshot) current = upstreamsOf(snapshot)
        return current
      }

      const conditions = yield* Effect.serviceOption(Conditions)
      if (Option.isSome(conditions)) {
        for (const family of ["a", "b"] as const) {
          conditions.value.register(() => {
            const place = places()[family]
            const is = place === undefined ? "none" : place === "unreadable" ? place : place.source
            return { name: `upstream_${vendorOf(family)}`, status: is, ok: is !== "unreadable" }
          })
        }
      }

      const upstream = (
        places: Upstreams,
        target: RoutedRequest,
        asked: Family
      ): Result.Result<ResolvedUpstream, GatewayError> => {
        const family = familyByRoute.get(target.route) ?? asked
        const place = places[family]
        if (place === "unreadable") return Result.fail(unreadableProvider)
        return place === undefined ? Result.fail(missingUpstreamByFamily[family]) : Result.succeed(place)
      }

      /** A mapping without an origin was stored while UPSTREAM_BASE_URL was the upstream. */
      const legacyMappingOrigin = Option.getOrNull(Option.map(upstreams.both, ({ base }) => base.origin))

      /** A credential of a key or a project counts at the upstream that it was stored for, and not at the other one. */
      const applicableMapping = (
        { origins }: Upstreams,
        place: ResolvedUpstream,
        bound: BoundCredential = unbound
      ): BoundCredential => {
        if (bound.secret._tag === "Missing") return bound
        const origin = bound.origin ?? legacyMappingOrigin
        if (origin !== null && origin !== place.base.origin && origins.has(origin)) return unbound
        return { secret: bound.secret, origin }
      }

      /** An upstream of no provider row. */
      const destinationOutsideRows = (
        base: UpstreamBase.UpstreamBase,
        target: RoutedRequest,
        credential: Redacted.Redacted
      ) => destinationAt(places(), { base, style: authorizationBearer, isVendor: false }, target, credential)

      /** A service's own credential, and no other. */
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
        findDelegated: (target, asked, credential) => {
          const now = places()
          return Result.flatMap(upstream(now, target, asked), (place) => destinationAt(now, place, target, credential))
        },
        find: (target, asked, key) => {
          if (target.service !== undefined) return serviceDestination(target, target.service.service)
          if (target.provider === "compat") {
            return Option.match(directCompat, {
              onNone: () => Result.fail(missingCompatUpstream),
              onSome: ({ base, serviceKey }) => destinationOutsideRows(base, target, serviceKey)
            })
          }
          const now = places()
          return Result.flatMap(upstream(now, target, asked), (place) => {
            const order = [
              applicableMapping(now, place, key?.keyMapping),
              applicableMapping(now, place, key?.projectMapping),
              place.ownCredential,
              place.startupCredential
            ]
            return Result.flatMap(usableCredential(resolve(order, place.base.origin)), (credential) =>
              destinationAt(now, place, target, credential)
            )
          })
        }
      })
    })
  )
}

/** An upstream, and the credentials of its own. */
interface ResolvedUpstream extends Pick<Destination, "base" | "style" | "isVendor"> {
  readonly ownCredential: BoundCredential
  readonly startupCredential: BoundCredential
  /** What says so, for readiness. */
  readonly source: StartupUpstream["name"] | "provider_row"
}

type UpstreamLookup = ResolvedUpstream | "unreadable" | undefined

/** The upstreams of a snapshot. */
interface Upstreams extends Readonly<Record<Family, UpstreamLookup>> {
  readonly snapshot: Snapshot
  readonly credentialHeaders: ReadonlyArray<string>
  readonly origins: ReadonlySet<string>
}

/** A route's own family; `/v1/models` and the wildcard have both. */
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
  const there = UpstreamBase.targetAt(base, target)
  if (there === undefined || (isUngoverned(route) && UpstreamBase.reachesForbiddenPath(base, target))) {
    return Result.fail(outsideBase)
  }
  return Result.succeed({ base, target: there, style, credentialHeaders, credential, isVendor })
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
    message: `There is no upstream for requests in the form of ${family}. An operator can add a provider row, or set ${variable} or UPSTREAM_BASE_URL.`
  })

const missingCredential = new GatewayError({
  code: "invalid_configuration",
  message:
    "No upstream credential is configured: neither for this key, nor its project, nor the provider, nor by UPSTREAM_SERVICE_KEY or the variable of the family's upstream. An operator can set one."
})

const outsideBase = new GatewayError({
  code: "unsupported_route",
  message: "The base URL of the upstream leaves no place for this path: what is below /v1 alone can be reached there."
})

const missingUpstreamByFamily: Readonly<Record<Family, GatewayError>> = {
  a: missingUpstream("OpenAI", "UPSTREAM_OPENAI_BASE_URL"),
  b: missingUpstream("Anthropic", "UPSTREAM_ANTHROPIC_BASE_URL")
}

const unreadableProvider = new GatewayError({
  code: "invalid_configuration",
  message:
    "The provider row of the upstream cannot be read by this version of the gateway, so nobody knows where this request should go. An operator finds the row in the log."
})

const unreadableCredential = new GatewayError({
  code: "invalid_configuration",
  message: "The upstream credential for this request cannot be opened. An operator finds the reason in the log."
})

const credentialOriginMismatch = new GatewayError({
  code: "invalid_configuration",
  message:
    "The upstream credential for this request was stored for another address than the upstream has now, and is not sent there. An operator can store it anew; UPSTREAM_SERVICE_KEY goes to UPSTREAM_BASE_URL alone, and so does the key of a family to its own."
})

const missingCompatUpstream = new GatewayError({
  code: "invalid_configuration",
  message:
    "The direct compatible upstream is not configured: it needs DIRECT_COMPAT_BASE_URL and DIRECT_COMPAT_SERVICE_KEY."
})

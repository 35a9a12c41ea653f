import { ByteSize, Context, Effect, type Layer, Option, type Redacted, Schema, Scope as Scopes } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { BodyMemory } from "../../http/BodyMemory.ts"
import {
  authorizationBearer,
  type CredentialStyle,
  credentialField,
  styleColumns,
  styleOf
} from "../../policy/routes/CredentialStyle.ts"
import { StartupUpstreams } from "../../policy/routes/StartupUpstreams.ts"
import { ofEnvironment, resolve } from "../../policy/routes/StoredCredential.ts"
import * as UpstreamBase from "../../policy/routes/UpstreamBase.ts"
import { GatewaySettings } from "../../process/GatewaySettings.ts"
import { Database } from "../../services/Database.ts"
import { type Upstream, UpstreamError } from "../../services/Upstream.ts"
import { open } from "../../state/SealedCredential.ts"
import type { Vault } from "../../state/Vault.ts"
import { ControlError, RequestId } from "../api/schema/Errors.ts"
import { allows, type Scope } from "../api/schema/Security.ts"
import { overloadedError, toResponse } from "../http/ErrorResponses.ts"
import { upstreamUiPath } from "../http/PortalPaths.ts"
import { authenticateToken, insufficientScope } from "../operators/Authentication.ts"
import { AuthSettings } from "../operators/AuthSettings.ts"
import type { OperatorTokens } from "../operators/OperatorTokens.ts"
import { storedRows, toStoreFailures } from "../store/Rows.ts"
import * as UpstreamResponse from "./UpstreamResponse.ts"
import { forControlOrigin, forwardedHeaders, isServiceWorker, valuesOf } from "./UpstreamUiHeaders.ts"
import * as UpstreamUiPaths from "./UpstreamUiPaths.ts"

/**
 * Serves the upstream's web interface to programs with an operator token. `ui_exposure` has no effect here. A sandbox
 * keeps its pages from acting as pages of the gateway in a browser. Browsers use `UpstreamUiListener`.
 */
export const layer: Layer.Layer<
  never,
  never,
  | HttpRouter.HttpRouter
  | OperatorTokens
  | Upstream
  | Database
  | Vault
  | GatewaySettings
  | StartupUpstreams
  | AuthSettings
  | BodyMemory
  | HttpRouter.Request<"Requires", RequestId>
> = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    // Every request has its own scope, so the scope of this layer is left out.
    const services = Context.omit(Scopes.Scope)(
      yield* Effect.context<
        OperatorTokens | Upstream | Database | Vault | GatewaySettings | StartupUpstreams | AuthSettings | BodyMemory
      >()
    )
    const paths = UpstreamUiPaths.make((yield* GatewaySettings).upstreamUiPaths)
    const handler = Effect.gen(function* () {
      const requestId = yield* RequestId
      return yield* Effect.catch(proxyRequest(paths), (error) => Effect.succeed(toResponse(error, requestId)))
    }).pipe(Effect.provideContext(services))
    yield* router.add("*", `${upstreamUiPath}/*`, handler)
  })
)

const proxyRequest = Effect.fnUntraced(function* (paths: UpstreamUiPaths.UpstreamUiPaths) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const { scopes } = yield* authenticateToken
  if (!allows(scopes, [requiredScope])) return yield* insufficientScope([requiredScope])
  const target = paths.upstreamTarget(request.url)
  if (target === undefined) return yield* new ControlError("not_found", "There is nothing at this path.")
  const { answer, origin } = yield* forwardToUpstream(target, undefined)
  const [link] = valuesOf(answer.headers, "location")
  const location =
    link === undefined ? undefined : paths.location(link, { origin, target, host: request.headers["host"] })
  return HttpServerResponse.stream(answer.body, {
    status: answer.status,
    headers: {
      ...forControlOrigin(answer.headers),
      ...(location !== undefined && { location }),
      "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
      "x-content-type-options": "nosniff"
    }
  })
})

export const requiredScope: Scope = "providers:update"

const withinMs = 120_000

/** Forwards the request with the upstream's credential. `cookie` contains only cookies that the upstream has set. */
export const forwardToUpstream = Effect.fnUntraced(function* (target: string, cookie: string | undefined) {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (isServiceWorker(request.headers)) return yield* serviceWorkerRefused
  const { withReservation } = yield* BodyMemory
  return yield* sendUpstream(request, target, cookie).pipe(
    withReservation(maxBodyBytes),
    Effect.catchTag("NoRoom", (error) => Effect.fail(overloadedError(error)))
  )
})

const sendUpstream = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  target: string,
  cookie: string | undefined
) {
  const body = yield* bodyOf(request)
  const destination = yield* findDestination
  const answer = yield* Effect.mapError(
    UpstreamResponse.request({
      // The web interface begins at the root of the host, even if the API has a base path.
      origin: destination.base.origin,
      method: request.method,
      target,
      headers: yield* headersOf(request, destination, cookie),
      body,
      headersWithinMs: withinMs,
      idleWithinMs: withinMs
    }),
    upstreamFailure
  )
  // A status above 599 is invalid (RFC 9110 §15), and Node cannot write it.
  if (answer.status > 599) return yield* upstreamFailure(new UpstreamError({ phase: "headers", reason: "malformed" }))
  return { answer, origin: destination.base.origin }
})

const serviceWorkerRefused = new ControlError(
  "service_worker_refused",
  "Service workers of the upstream's UI are refused, because they would outlive the session."
)

/** The UI sends forms and small uploads only. */
const maxBodyBytes = 16_777_216

const bodyOf = (request: HttpServerRequest.HttpServerRequest) =>
  Number(request.headers["content-length"] ?? 0) > 0 || request.headers["transfer-encoding"] !== undefined
    ? request.arrayBuffer.pipe(
        Effect.map((bytes) => new Uint8Array(bytes)),
        Effect.mapError(({ reason }) =>
          reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
            ? new ControlError("request_body_too_large", `The request body exceeds the limit of ${maxBodyBytes} bytes.`)
            : new ControlError("invalid_request", "The request body ended before it was complete.")
        ),
        Effect.provideService(HttpServerRequest.MaxBodySize, ByteSize.bytes(maxBodyBytes))
      )
    : Effect.succeed(null)

interface Destination {
  readonly base: UpstreamBase.UpstreamBase
  readonly style: CredentialStyle
  readonly credential: Redacted.Redacted
}

/** Returns the upstream that serves both API families: the enabled provider row, or else the one in the environment. */
const findDestination = Effect.gen(function* () {
  const { sql } = yield* Database
  const upstreams = yield* StartupUpstreams
  const row = yield* providerRows.first(sql`
    SELECT id, base_url, sealed_credential, credential_origin, credential_header_mode, credential_header_name,
      credential_header_value_format
    FROM provider_configs WHERE provider = 'upstream' AND family IS NULL AND enabled`)
  const startup = Option.getOrUndefined(upstreams.both)
  const base = row === undefined ? startup?.base : UpstreamBase.of(row.base_url)
  if (base === undefined) return yield* noSharedUpstream
  const startupFallback = startup && ofEnvironment(startup.serviceKey, startup.base.origin)
  const candidates = [
    ...(row === undefined
      ? []
      : [
          {
            secret: yield* open(row.sealed_credential, `provider_configs/${row.id}`),
            origin: row.credential_origin
          }
        ]),
    ...(startupFallback === undefined ? [] : [startupFallback])
  ]
  const resolved = resolve(candidates, base.origin)
  if (resolved._tag === "OtherOrigin") return yield* credentialOfOtherOrigin
  if (resolved._tag !== "Present") return yield* noUsableCredential
  const destination: Destination = {
    base,
    style: row === undefined ? authorizationBearer : styleOf(row),
    credential: resolved.credential
  }
  return destination
}).pipe(toStoreFailures)

const providerRows = storedRows(
  Schema.Struct({
    id: Schema.String,
    base_url: Schema.String,
    sealed_credential: Schema.NullOr(Schema.String),
    credential_origin: Schema.NullOr(Schema.String),
    ...styleColumns
  }),
  { table: "provider_configs", key: ["id"] }
)

const noSharedUpstream = new ControlError(
  "upstream_unconfigured",
  "No upstream serves both families, so there is no UI to show. Enable a provider row whose family is null, or set UPSTREAM_BASE_URL."
)

const noUsableCredential = new ControlError(
  "upstream_unconfigured",
  "There is no usable upstream credential: store one in the upstream's provider row, or set UPSTREAM_SERVICE_KEY."
)

const credentialOfOtherOrigin = new ControlError(
  "upstream_unconfigured",
  "The upstream credential was stored for another address and is not sent to the current one: store it again in the provider row. UPSTREAM_SERVICE_KEY is only sent to UPSTREAM_BASE_URL."
)

const headersOf = Effect.fnUntraced(function* (
  { headers }: HttpServerRequest.HttpServerRequest,
  { credential, style }: Destination,
  cookie: string | undefined
) {
  const credentialHeader = style._tag === "CustomHeader" ? [style.name.toLowerCase()] : []
  // Operators can rename the header of the gateway key. The renamed header must not reach the upstream.
  const keyHeader = (yield* (yield* AuthSettings).get).svc_key_header.toLowerCase()
  const requestId = yield* RequestId
  return [
    ...forwardedHeaders(headers, [...credentialHeader, keyHeader]),
    ...(cookie === undefined ? [] : ["cookie", cookie]),
    ...credentialField(style, credential),
    ...["accept-encoding", "identity", "x-request-id", requestId, "x-svc-request-id", requestId]
  ]
})

export const upstreamFailure = ({ reason }: UpstreamError) =>
  reason === "timeout"
    ? new ControlError("upstream_timeout", `The upstream did not respond within ${withinMs} ms.`)
    : new ControlError(
        "upstream_connection",
        reason === "malformed"
          ? "The upstream's response is not valid HTTP."
          : "The upstream could not be reached or closed the connection."
      )

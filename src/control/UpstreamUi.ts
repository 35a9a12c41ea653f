import { ByteSize, Effect, type Layer, type Scope as Lifetime, Option, Redacted, Schema, Stream } from "effect"
import { Cookies, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { hopByHop, neverForwarded, oneOf } from "../gateway/model/ClientHeaders.ts"
import {
  authorizationBearer,
  type CredentialStyle,
  credentialField,
  styleColumns,
  styleOf
} from "../gateway/model/CredentialStyle.ts"
import { GatewaySettings } from "../gateway/model/Settings.ts"
import { Vault } from "../gateway/model/Vault.ts"
import { Database } from "../services/Database.ts"
import { type Upstream, UpstreamError } from "../services/Upstream.ts"
import { authenticate, lacking } from "./Authentication.ts"
import { ControlError, RequestId } from "./api/Errors.ts"
import { allows } from "./api/Security.ts"
import { FrontDoor } from "./FrontDoor.ts"
import type { OperatorTokens } from "./OperatorTokens.ts"
import { toResponse } from "./Refusals.ts"
import { rows, settled } from "./Store.ts"
import * as UpstreamAnswer from "./UpstreamAnswer.ts"
import * as UpstreamUiPaths from "./UpstreamUiPaths.ts"
import { lifetimeSeconds, UpstreamUiSessions } from "./UpstreamUiSessions.ts"

/** The upstream's own UI and what it calls, for operators alone, whatever `ui_exposure` says (reference §11.5). */
export const layer: Layer.Layer<
  never,
  never,
  | HttpRouter.HttpRouter
  | OperatorTokens
  | UpstreamUiSessions
  | Upstream
  | Database
  | Vault
  | GatewaySettings
  | FrontDoor
  | HttpRouter.Request<"Requires", RequestId>
> = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const services = yield* Effect.context<
      OperatorTokens | UpstreamUiSessions | Upstream | Database | Vault | GatewaySettings | FrontDoor
    >()
    const paths = UpstreamUiPaths.make((yield* GatewaySettings).upstreamUiPaths)
    const answer = Effect.gen(function* () {
      const requestId = yield* RequestId
      return yield* Effect.catch(proxied(paths), (error) => Effect.succeed(toResponse(error, requestId)))
    }).pipe(Effect.provideContext(services))
    for (const pattern of paths.patterns) yield* router.add("*", pattern, answer)
  })
)

const proxied = Effect.fnUntraced(function* (paths: UpstreamUiPaths.UpstreamUiPaths) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const session = yield* admitted(request)
  const target = paths.upstreamTarget(request.url)
  if (target === undefined) return yield* new ControlError("not_found", "There is nothing at this path.")
  const body = yield* bodyOf(request)
  const destination = yield* destinationOf
  const answer = yield* Effect.mapError(
    UpstreamAnswer.ask({
      origin: destination.origin,
      method: request.method,
      target,
      headers: yield* headersOf(request, destination),
      body,
      headersWithinMs: withinMs,
      idleWithinMs: withinMs
    }),
    unreachable
  )
  const response = yield* Effect.mapError(responseOf(answer, destination.origin, paths), unreachable)
  return Option.match(session, {
    onNone: () => response,
    onSome: (id) => HttpServerResponse.setCookieUnsafe(response, sessionCookie, Redacted.value(id), cookieFor(request))
  })
})

const scope = "providers:update"
const sessionCookie = "svc_upstream_ui_session"
const withinMs = 120_000

/**
 * Lets in an operator's token, or the session that it began, and answers the session that begins now. The UI's scripts
 * send an `Authorization` of their own, meant for the upstream: beside a session only an operator's token counts.
 */
const admitted = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const sessions = yield* UpstreamUiSessions
  const id = request.cookies[sessionCookie]
  const session = id === undefined ? Option.none() : yield* sessions.find(id)
  if (Option.isSome(session) && !/^bearer +op_live_/i.test(request.headers["authorization"] ?? "")) {
    if (!allows(session.value.scopes, [scope])) return yield* lacking([scope])
    if (!safe.has(request.method) && !isSameOrigin(request.headers)) return yield* crossOrigin
    return Option.none<Redacted.Redacted>()
  }
  const { scopes, tokenId } = yield* authenticate
  if (!allows(scopes, [scope])) return yield* lacking([scope])
  if (Option.exists(session, (begun) => begun.tokenId === tokenId)) return Option.none<Redacted.Redacted>()
  // the token is enough: without Redis there is no session, and the call is answered all the same
  return yield* sessions.begin(tokenId).pipe(
    Effect.tapError((cause) => Effect.logWarning("a session of the upstream's UI cannot begin", { cause })),
    Effect.option
  )
})

const safe: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])

const crossOrigin = new ControlError(
  "cross_origin_request",
  "With a session, what changes something must come from the UI's own pages; or send the operator token."
)

type Fields = Readonly<Record<string, string | undefined>>

/** A cookie comes along on its own, so the browser's word for where the request comes from is asked for as well. */
const isSameOrigin = (headers: Fields): boolean => {
  const site = headers["sec-fetch-site"]
  if (site !== undefined) return site === "same-origin"
  const origin = headers["origin"]
  if (origin === undefined || !URL.canParse(origin)) return false
  const { host, protocol } = new URL(origin)
  const scheme = forwarded(headers, "x-forwarded-proto")
  const own = forwarded(headers, "x-forwarded-host") ?? headers["host"]
  return host === own && (scheme === undefined || protocol === `${scheme}:`)
}

/** The first proxy's word: each on the way may have added its own. */
const forwarded = (headers: Fields, name: string): string | undefined => headers[name]?.split(",", 1)[0]?.trim()

const cookieFor = ({ headers }: HttpServerRequest.HttpServerRequest) => ({
  httpOnly: true,
  sameSite: "strict" as const,
  path: "/",
  maxAge: `${lifetimeSeconds} seconds` as const,
  secure: forwarded(headers, "x-forwarded-proto") === "https"
})

/** Forms and small uploads. */
const maxBodyBytes = 16_777_216

const bodyOf = (request: HttpServerRequest.HttpServerRequest) =>
  Number(request.headers["content-length"] ?? 0) > 0 || request.headers["transfer-encoding"] !== undefined
    ? request.arrayBuffer.pipe(
        Effect.map((bytes) => new Uint8Array(bytes)),
        Effect.mapError(({ reason }) =>
          reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
            ? new ControlError("request_body_too_large", `The body may have at most ${maxBodyBytes} bytes.`)
            : new ControlError("invalid_request", "The body ended before it was complete.")
        ),
        Effect.provideService(HttpServerRequest.MaxBodySize, ByteSize.bytes(maxBodyBytes))
      )
    : Effect.succeed(null)

interface Destination {
  readonly origin: string
  readonly style: CredentialStyle
  readonly credential: Redacted.Redacted
}

/** The enabled upstream and its own credential, else what the environment says (reference §6.6, from step 3 on). */
const destinationOf = Effect.gen(function* () {
  const { sql } = yield* Database
  const settings = yield* GatewaySettings
  const row = yield* provider.first(sql`
    SELECT id, base_url, sealed_credential, credential_header_mode, credential_header_name,
      credential_header_value_format
    FROM provider_configs WHERE provider = 'upstream' AND enabled`)
  const credential =
    row?.sealed_credential == null
      ? settings.upstreamServiceKey
      : yield* opened(row.sealed_credential, `provider_configs/${row.id}`)
  if (Option.isNone(credential)) return yield* unusable
  const destination: Destination = {
    origin: row === undefined ? settings.upstreamOrigin : new URL(row.base_url).origin,
    style: row === undefined ? authorizationBearer : styleOf(row),
    credential: credential.value
  }
  return destination
}).pipe(settled)

const provider = rows(
  Schema.Struct({
    id: Schema.String,
    base_url: Schema.String,
    sealed_credential: Schema.NullOr(Schema.String),
    ...styleColumns
  })
)

const opened = (sealed: string, context: string) =>
  Effect.flatMap(Vault, (vault) => vault.open(sealed, context)).pipe(
    Effect.tapError(({ reason }) => Effect.logError("a stored credential cannot be opened", { context, reason })),
    Effect.option
  )

const unusable = new ControlError(
  "upstream_unconfigured",
  "There is no upstream credential that can be used: store one in the upstream's provider row, or set UPSTREAM_SERVICE_KEY."
)

/** Beyond what never goes to an upstream: our cookies, and what would make an answer unreadable or a part of one. */
const stripped = oneOf([...neverForwarded, "cookie", "accept-encoding", "range", "if-range", "x-request-id"])

const headersOf = Effect.fnUntraced(function* (
  { headers }: HttpServerRequest.HttpServerRequest,
  { credential, style }: Destination
) {
  const own = style._tag === "CustomHeader" ? style.name.toLowerCase() : undefined
  // the front door may have given the gateway key's header another name
  const keyHeader = (yield* (yield* FrontDoor).get).svc_key_header.toLowerCase()
  const kept = Object.entries(headers).filter(([name]) => !stripped.test(name) && name !== own && name !== keyHeader)
  const requestId = yield* RequestId
  return [
    ...kept.flat(),
    ...credentialField(style, credential),
    ...["accept-encoding", "identity", "x-request-id", requestId, "x-svc-request-id", requestId]
  ]
})

/** The largest page or script whose links are put right; a longer one passes as it is. */
const mostRewritten = 2_097_152

const responseOf = Effect.fnUntraced(function* (
  { body, headers, status, whole }: UpstreamAnswer.UpstreamAnswer,
  origin: string,
  paths: UpstreamUiPaths.UpstreamUiPaths
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, UpstreamError, Lifetime.Scope> {
  // no class of answers has it (RFC 9110 §15), and the server of this listener does not write it
  if (status > 599) return yield* new UpstreamError({ phase: "headers", reason: "malformed" })
  const fields = foldedFields(headers, (link) => paths.shown(link, origin))
  const cookies = Cookies.remove(Cookies.fromSetCookie(valuesOf(headers, "set-cookie")), sessionCookie)
  const options = { status, headers: fields, cookies }
  const rewrite =
    status === 206 || encoded(fields["content-encoding"]) ? undefined : rewriterOf(paths, fields["content-type"])
  const text = rewrite === undefined ? undefined : yield* whole(mostRewritten)
  if (rewrite === undefined || text === undefined) return HttpServerResponse.stream(body, options)
  return HttpServerResponse.stream(
    Stream.make(Buffer.from(rewrite(text.toString("latin1"), origin), "latin1")),
    options
  )
})

const encoded = (encoding: string | undefined): boolean => encoding !== undefined && encoding !== "identity"

const rewriterOf = (paths: UpstreamUiPaths.UpstreamUiPaths, type = "") => {
  if (/^(?:text\/html|(?:text|application)\/(?:x-)?javascript)\b/i.test(type)) return paths.shownText
  return /^application\/(?:[\w.-]+\+)?json\b/i.test(type) ? paths.shownJson : undefined
}

const dropped = oneOf([...hopByHop, "content-length", "set-cookie", "alt-svc", "x-request-id"])

/** The server of this listener has one field of a name: what came in several is joined (RFC 9110 §5.3). */
const foldedFields = (headers: ReadonlyArray<string>, shown: (link: string) => string): Record<string, string> => {
  const fields: Record<string, string> = {}
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase()
    if (dropped.test(name)) continue
    const value = name === "location" ? shown(headers[i + 1]!) : headers[i + 1]!
    fields[name] = fields[name] === undefined ? value : `${fields[name]}, ${value}`
  }
  return fields
}

const valuesOf = (headers: ReadonlyArray<string>, name: string): ReadonlyArray<string> =>
  headers.filter((_, index) => index % 2 === 1 && headers[index - 1]?.toLowerCase() === name)

const unreachable = ({ reason }: UpstreamError) =>
  reason === "timeout"
    ? new ControlError("upstream_timeout", `The upstream did not answer within ${withinMs} ms.`)
    : new ControlError(
        "upstream_connection",
        reason === "malformed"
          ? "What the upstream answered is not HTTP."
          : "The upstream could not be reached, or hung up."
      )

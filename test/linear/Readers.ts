import { Effect, Option, Redacted, Result, Schema } from "effect"
import { Headers as HttpHeaders } from "effect/http"
import * as AddressRule from "../../layers/http/AddressRule.ts"
import * as RedisReply from "../../layers/ioredis/RedisReply.ts"
import * as RedisArguments from "../../layers/redis-memory/Arguments.ts"
import { defaultSettings, Simulator } from "../../layers/simulator/Simulator.ts"
import * as Fields from "../../src/control/api/schema/Fields.ts"
import * as Labels from "../../src/control/api/schema/Labels.ts"
import { encodingOf } from "../../src/control/http/FileEncoding.ts"
import { isPageRequest, upstreamUiPath } from "../../src/control/http/PortalPaths.ts"
import * as LivePosition from "../../src/control/live/LivePosition.ts"
import * as LiveTopics from "../../src/control/live/LiveTopics.ts"
import * as ControlAuthentication from "../../src/control/operators/Authentication.ts"
import * as OpenApiDocument from "../../src/control/services/OpenApiDocument.ts"
import * as StudioExport from "../../src/control/services/StudioExport.ts"
import * as SessionCookie from "../../src/control/session/SessionCookie.ts"
import * as ReturnPath from "../../src/control/sign-in/ReturnPath.ts"
import * as Validation from "../../src/control/store/Validation.ts"
import * as UpstreamUiCookies from "../../src/control/upstream-ui/UpstreamUiCookies.ts"
import * as UpstreamUiPaths from "../../src/control/upstream-ui/UpstreamUiPaths.ts"
import * as IdentityToken from "../../src/gateway/auth/IdentityToken.ts"
import * as TrustedHeaders from "../../src/gateway/auth/TrustedHeaders.ts"
import * as LocationHeaders from "../../src/gateway/forward/LocationHeaders.ts"
import { CreatedObjects } from "../../src/gateway/forward/objects/CreatedObjects.ts"
import { SecretMask } from "../../src/gateway/forward/SecretMask.ts"
import * as SseEventLimit from "../../src/gateway/forward/SseEventLimit.ts"
import * as SseTerminator from "../../src/gateway/forward/SseTerminator.ts"
import * as ContentTypes from "../../src/gateway/request/ContentTypes.ts"
import * as FormBody from "../../src/gateway/request/FormBody.ts"
import * as UserAgents from "../../src/gateway/request/UserAgents.ts"
import * as AccessLog from "../../src/gateway/telemetry/AccessLog.ts"
import { ModelResponse } from "../../src/gateway/telemetry/ModelResponse.ts"
import * as UsageTap from "../../src/gateway/usage/UsageTap.ts"
import * as Mermaid from "../../src/graph/Mermaid.ts"
import { DetectorSet } from "../../src/guardrails/detect/DetectorSet.ts"
import { Scanner, scan } from "../../src/guardrails/detect/Scanner.ts"
import * as GuardrailOutcome from "../../src/guardrails/GuardrailOutcome.ts"
import * as HttpGuardrail from "../../src/guardrails/HttpGuardrail.ts"
import * as PiiRedact from "../../src/guardrails/PiiRedact.ts"

import { LinkContext } from "../../src/guardrails/redact/LinkContext.ts"
import { Redaction } from "../../src/guardrails/redact/Redaction.ts"
import { TextRedactor } from "../../src/guardrails/redact/TextRedactor.ts"
import { StreamChain } from "../../src/guardrails/StreamChain.ts"
import type { StreamCall } from "../../src/guardrails/StreamJudge.ts"
import { StreamRedactor } from "../../src/guardrails/stream/StreamRedactor.ts"
import * as DocumentText from "../../src/guardrails/text/DocumentText.ts"
import { EventReader } from "../../src/guardrails/text/EventReader.ts"
import type { TextRoute } from "../../src/guardrails/text/Place.ts"

import * as Headers from "../../src/http/Headers.ts"
import * as RequestHost from "../../src/http/RequestHost.ts"
import * as KeySet from "../../src/identity/KeySet.ts"
import * as CanonicalJson from "../../src/messaging/envelope/CanonicalJson.ts"
import * as StatusEvent from "../../src/messaging/envelope/StatusEvent.ts"
import * as TaskEnvelope from "../../src/messaging/envelope/TaskEnvelope.ts"
import * as Timestamp from "../../src/messaging/envelope/Timestamp.ts"
import * as TraceContext from "../../src/messaging/envelope/TraceContext.ts"
import * as WorkflowEnvelope from "../../src/messaging/envelope/WorkflowEnvelope.ts"
import * as DeadLetter from "../../src/messaging/failure/DeadLetter.ts"
import * as Observation from "../../src/messaging/observe/Observation.ts"
import * as RetryHeaders from "../../src/messaging/retry/RetryHeaders.ts"
import { ContractAliasConfig } from "../../src/messaging/topology/Aliases.ts"
import * as Facts from "../../src/policy/facts/Facts.ts"
import * as GatewayCookies from "../../src/policy/facts/GatewayCookies.ts"
import * as JsonBounds from "../../src/policy/facts/JsonBounds.ts"
import * as JsonMembers from "../../src/policy/facts/JsonMembers.ts"
import * as NamedModels from "../../src/policy/facts/NamedModels.ts"
import * as Query from "../../src/policy/facts/Query.ts"
import * as CompatPaths from "../../src/policy/routes/CompatPaths.ts"
import { authorizationBearer } from "../../src/policy/routes/CredentialStyle.ts"
import * as Path from "../../src/policy/routes/Path.ts"
import * as UpstreamBase from "../../src/policy/routes/UpstreamBase.ts"
import * as UpstreamObjects from "../../src/policy/routes/UpstreamObjects.ts"
import * as UpstreamPaths from "../../src/policy/routes/UpstreamPaths.ts"
import * as ServicePricing from "../../src/policy/ServicePricing.ts"
import * as FairShare from "../../src/services/FairShare.ts"
import * as BearerToken from "../../src/status/http/BearerToken.ts"
import * as RequestParameters from "../../src/status/http/RequestParameters.ts"
import * as StatusMessage from "../../src/status/hub/StatusMessage.ts"
import * as SchemaCheck from "../../src/status/payload/SchemaCheck.ts"
import * as EventFrames from "../../src/status/stream/EventFrames.ts"
import { exportedCsv } from "../control/usage/ExportedEvent.ts"

import { allDetectors } from "../guardrails/detect/Texts.ts"
import { streamStep } from "../guardrails/stream/StreamSteps.ts"

import { type Sizes, usualSizes } from "./Growth.ts"
import { documents, nested, type Shape, texts } from "./Shapes.ts"

/** Something that reads text which others wrote. */
export interface Reader {
  readonly name: string
  /** The source files whose reading it runs. */
  readonly files: ReadonlyArray<string>
  readonly shapes: ReadonlyArray<Shape>
  readonly sizes: Sizes
  readonly read: (text: string) => unknown
}

/** A request's head has at most 16 KiB, which makes a small price for each character of it unimportant. */
const head: Sizes = { longest: 16_384, cheapMs: 0.5 }
/** Of what costs more for each character: schemas, patterns one after the other, a call for each byte. */
const thorough: Sizes = { longest: 8_192, cheapMs: 1 }

const reader =
  (shapes: ReadonlyArray<Shape>, usual: Sizes) =>
  (name: string, files: ReadonlyArray<string>, read: Reader["read"], sizes = usual): Reader => ({
    name,
    files,
    shapes,
    sizes,
    read
  })
const ofText = reader(texts, usualSizes)
const ofHead = reader(texts, head)
const ofJson = reader(documents, usualSizes)
const letters = texts.filter(({ name }) => name === '"a…"')
const ofLetters = reader(letters, { longest: 4_096, cheapMs: 15 })
const ofNested = reader(nested, { longest: 32_768, cheapMs: 15 })

const bytes = (text: string) => Buffer.from(text)

/** By one chunk, and by chunks of a byte each. */
const ofStream = (name: string, files: ReadonlyArray<string>, follow: () => (chunk: Buffer) => unknown) => [
  ofText(`${name}, whole`, files, (text) => follow()(bytes(text))),
  ofText(
    `${name}, byte by byte`,
    files,
    (text) => {
      const push = follow()
      const all = bytes(text)
      for (let at = 0; at < all.length; at++) push(all.subarray(at, at + 1))
    },
    { longest: 8_192, cheapMs: 8 }
  )
]

/** A stream of which everything is allowed. */
const guardedStream = (streamMode: "buffer" | "window") => {
  const nothing = { push: () => {}, end: () => {}, stop: () => {}, ready: () => {} }
  const call: StreamCall = (_step, _response, done) => {
    done(Result.succeed({ action: "allow", reason: null, metadata: {} }))
    return () => {}
  }
  const chain = new StreamChain(
    [streamStep(streamMode)],
    { route: "chat", known: new Map(), now: () => 0, call },
    nothing
  )
  return (chunk: Buffer) => chain.push(chunk)
}

const tapped = (tap: UsageTap.UsageTap) => (chunk: Buffer) => {
  tap.push(chunk)
  return tap
}

/** Watches an answer of this type that begins with `begin`. */
const watched =
  (contentType: string, begin = ""): (() => (chunk: Buffer) => unknown) =>
  () => {
    const watch = new CreatedObjects({ kind: "response", created: true, hosted: true, parts: true }, () => {})
    watch.onHead(200, ["content-type", contentType])
    watch.onChunk(bytes(begin))
    return (chunk) => {
      watch.onChunk(chunk)
    }
  }

const now = Timestamp.ofMillis(1_764_000_000_000)
const aliases = new ContractAliasConfig()
const statusReader = StatusMessage.eventReader({ aliases, sanitizeMetaKeys: undefined, maxEventBytes: 1_000_000 })
const uiPaths = UpstreamUiPaths.make([])
const portalFile = { contentType: "text/css", identity: bytes("plain"), gzip: bytes("gzip"), br: bytes("br") }
const simulator = new Simulator(defaultSettings)
const injected: Headers.UpstreamHeaderOptions = {
  credential: Redacted.make("secret"),
  style: authorizationBearer,
  credentialHeaders: [],
  keyHeader: "x-api-key",
  gatewayHeaders: [],
  plainResponse: true
}
const priced = ServicePricing.of({
  cost_mode: "none",
  estimated_cost_usd: null,
  openapi_endpoints: [],
  endpoint_pricing_rules: [
    { method: "POST", path_template: "/jobs/{id}", operation_id: null, cost_mode: "none", estimated_cost_usd: null }
  ],
  pricing_rules: ["/a/b/c", "/0/a"].map((json_pointer) => ({
    ...{ name: null, json_pointer, equals: "x", cost_mode: "fixed", estimated_cost_usd: 1 }
  }))
})
const rules = { tenantId: null, requiredScope: null, requiredRole: null, allowedGroups: [], skewMs: 0 }
const anything: PiiRedact.Options = { config: {}, route: "other", known: new Map([["[EMAIL_1]", "a@b.co"]]) }
const detectors = Result.getOrThrow(DetectorSet.of(allDetectors))
const detectorFiles = [
  ...[
    "lexing/Lexer",
    "lexing/MarkupEscapes",
    "NamedSecret",
    "ClientSecret",
    "Token",
    "Placeholders",
    "PaymentCard",
    "InternationalBankAccount",
    "IpAddress",
    "MachineNumbers"
  ],
  ...[
    "Email",
    "PhoneNumber",
    "PhoneShapes",
    "SocialSecurityNumber",
    "Secret",
    "SecretShapes",
    "PrivateKey",
    "CustomPattern"
  ]
].map((name) => `src/guardrails/detect/${name}.ts`)
const documentFiles = ["JsonTape", "Reader"].map((name) => `src/guardrails/text/${name}.ts`)
const isCursor = Schema.decodeUnknownOption(Fields.Cursor)
const isLabels = Schema.decodeUnknownOption(Schema.Struct(Labels.labels), { errors: "all" })
const isSearch = Schema.decodeUnknownOption(Labels.SearchText)
const isTimestamp = Schema.decodeUnknownOption(Timestamp.Timestamp)
const isRows = Schema.decodeUnknownOption(StudioExport.StudioExport)

/** Header fields, as many as the text has pieces. */
const fieldsOf = (text: string) => text.split(/[,;&\s]/).flatMap((name) => [name, "x"])

export const readers: ReadonlyArray<Reader> = [
  // heads of requests and answers
  ofHead("Connection", ["src/http/Headers.ts", "src/policy/facts/RequestHeaders.ts"], (text) =>
    Headers.forUpstream(["connection", text, ...fieldsOf(text)], injected)
  ),
  ofHead("header fields of an answer", ["src/http/Headers.ts"], (text) =>
    Headers.forClient(fieldsOf(text), [["x", "y"]])
  ),
  ofHead("traceparent and ids", ["src/http/Headers.ts"], (text) => [
    Headers.traceId(text),
    Headers.validClientId(text)
  ]),
  ofHead("user agents", ["src/gateway/request/UserAgents.ts"], (text) => [
    UserAgents.clientOf(text),
    UserAgents.clientOf(`Mozilla/5.0 ${text}`)
  ]),
  ofHead("content types", ["src/gateway/request/ContentTypes.ts"], (text) =>
    ContentTypes.unreadableEncoding(["content-type", `application/json; ${text}`])
  ),
  ofHead("paths", ["src/policy/routes/Path.ts"], (text) => Path.canonicalise(`/${text}`)),
  ofHead("paths, as logs tell them", ["src/gateway/telemetry/AccessLog.ts"], (text) => AccessLog.pathOf(`/${text}`)),
  ofHead("path patterns", ["src/policy/routes/Path.ts", "src/policy/routes/Exposure.ts"], (text) =>
    Path.isPattern(`/${text}`)
  ),
  ofHead("paths, as lax upstreams read them", ["src/policy/routes/UpstreamPaths.ts"], (text) =>
    UpstreamPaths.foldedPath(`/${text}`)
  ),
  ofHead(
    "paths of the compatible upstream",
    ["src/policy/routes/CompatPaths.ts", "src/policy/routes/RouteTable.ts"],
    (text) => [
      CompatPaths.isOpen(["/*"], `/${text}`),
      CompatPaths.workOf(`/v1/threads/${text}`),
      NamedModels.namedInPath(`/v1/models/${text}`)
    ]
  ),
  ofHead("queries", ["src/policy/facts/UrlEncoded.ts", "src/policy/facts/MemberName.ts"], (text) =>
    Query.decidingParameter(`/v1?${text}`, new Set(["model"]))
  ),
  ofHead("paths with a price", ["src/policy/ServicePricing.ts"], (text) =>
    ServicePricing.resolve(ServicePricing.freePricing, "POST", `/${text}`, ServicePricing.selectNothing)
  ),
  ofHead("paths beside those with a price", ["src/policy/ServicePricing.ts"], (text) =>
    ServicePricing.misspelledTemplate(priced, "POST", `/${text}`)
  ),
  ofJson("members with a price", ["src/policy/ServicePricing.ts", "src/policy/facts/JsonMembers.ts"], (text) => [
    ServicePricing.ambiguousMember(priced, `{"a":{"b":${text}}}`),
    ServicePricing.ambiguousMember(priced, `[${text}]`)
  ]),
  ofHead("JSON pointers", ["src/policy/ServicePricing.ts"], (text) => ServicePricing.pointerTokens(`/${text}`)),
  ofHead("locations for browsers", ["src/gateway/forward/LocationHeaders.ts"], (text) =>
    LocationHeaders.forBrowser(
      ["x-forwarded-host", text, "x-forwarded-proto", text],
      UpstreamBase.of("http://u/a")
    )(["location", `/a/ui${text}`])
  ),
  ofHead("paths below an upstream's base", ["src/policy/routes/UpstreamBase.ts"], (text) => [
    UpstreamBase.refusedAddress(`https://u/${text.slice(0, 2000)}`),
    UpstreamBase.targetAt(UpstreamBase.of("https://u/v1beta/openai"), `/v1/${text}`),
    UpstreamBase.reachesForbiddenPath(UpstreamBase.of("https://u/v1beta/openai"), `/v1/${text}`)
  ]),
  ofHead("identity tokens", ["src/gateway/auth/IdentityToken.ts", "src/identity/SignedToken.ts"], (text) =>
    IdentityToken.fromHeaders(["authorization", `Bearer ${text}.${text}.${text}`])
  ),
  ofHead("paths to return to", ["src/control/sign-in/ReturnPath.ts"], (text) => ReturnPath.parse(`/admin-ui/${text}`)),
  ofHead("signed identities", ["src/gateway/auth/TrustedHeaders.ts"], (text) =>
    TrustedHeaders.verify(
      [TrustedHeaders.identityHeader, text, TrustedHeaders.signatureHeader, text],
      Redacted.make("secret"),
      rules,
      0
    )
  ),
  ofHead("credentials of operators", ["src/control/operators/Authentication.ts"], (text) =>
    Effect.runSyncExit(ControlAuthentication.bearerToken(`Bearer ${text}`, "op_live_"))
  ),
  ofHead("credentials of status clients", ["src/status/http/BearerToken.ts"], (text) =>
    BearerToken.refusalOf(Option.some(Redacted.make("secret")), {
      authorization: `Bearer ${text}`,
      host: text,
      origin: text
    })
  ),
  ofHead("queries of status clients", ["src/status/http/RequestParameters.ts"], (text) =>
    RequestParameters.parametersOf(`/history?${text}`)
  ),
  ofHead("positions in the live topics", ["src/control/live/LivePosition.ts"], LivePosition.decode),
  ofHead("lists of live topics", ["src/control/live/LiveTopics.ts"], (text) =>
    Effect.runSyncExit(LiveTopics.read(text, ["*"]))
  ),
  ofHead("event ids", ["src/status/stream/EventFrames.ts"], (text) => [
    EventFrames.frameIdOf(text),
    EventFrames.oneLine(text),
    EventFrames.lastEventIdOf(text)
  ]),
  ofHead("cursors", ["src/control/api/schema/Fields.ts"], (text) => isCursor(text)),
  ofHead("labels and searches", ["src/control/api/schema/Labels.ts"], (text) => [
    isLabels({ description: text, owner_email: text, tags: [text] }),
    isSearch(text)
  ]),
  ofHead("cookies of sessions", ["src/control/session/SessionCookie.ts"], (text) => [
    SessionCookie.sessionCandidates(text, "svc"),
    SessionCookie.sessionCandidates(`svc=${text.replaceAll("a", "; svc=a")}`, "svc")
  ]),
  ofHead("addresses of the portal's pages", ["src/control/http/PortalPaths.ts"], (text) => [
    isPageRequest({ method: "GET", url: `/admin-ui/${text}`, headers: HttpHeaders.fromInput({ accept: text }) }),
    isPageRequest({ method: "GET", url: "/admin-ui/", headers: HttpHeaders.fromInput({ accept: `${text},text/html` }) })
  ]),
  ofHead("encodings that browsers accept", ["src/control/http/FileEncoding.ts"], (text) => [
    encodingOf(portalFile, text),
    encodingOf(portalFile, text.replaceAll("a", ",a;q=0"))
  ]),
  ofHead("cookies of the upstream's UI", ["src/control/upstream-ui/UpstreamUiCookies.ts"], (text) => [
    UpstreamUiCookies.forBrowser([text]),
    UpstreamUiCookies.forUpstream(text)
  ]),
  ofHead("paths of the upstream's UI", ["src/control/upstream-ui/UpstreamUiPaths.ts"], (text) => [
    uiPaths.upstreamTarget(`${upstreamUiPath}/${text}`),
    uiPaths.location(`/ui/${text}`, { origin: "http://u", target: "/", host: "c" })
  ]),
  ofHead("addresses that operators give", ["src/control/store/Validation.ts"], (text) => [
    Validation.validateBaseUrl(`http://a/${text}`),
    Validation.trimBaseUrl(`http://a/${text}`)
  ]),
  ofHead("network addresses", ["layers/http/AddressRule.ts"], (text) => AddressRule.refusedKind(text, "allow")),

  ofHead("hosts", ["src/http/RequestHost.ts"], (text) => {
    const hostname = RequestHost.requestHostname(text)
    return [RequestHost.isLoopback(hostname), RequestHost.isAddress(text), RequestHost.isLoopback(text)]
  }),
  ofHead("addresses of clients", ["src/services/FairShare.ts"], (text) => FairShare.callerOfAddress(text)),
  ofHead("cookies", ["src/policy/facts/GatewayCookies.ts"], (text) => GatewayCookies.withoutGatewayCookies(text)),

  // bodies that clients send
  ofText("urlencoded forms", ["src/gateway/request/FormBody.ts", "src/policy/facts/UrlEncoded.ts"], (text) =>
    FormBody.read("application/x-www-form-urlencoded", bytes(text), new Set(["model"]))
  ),
  ofText("a value of a form", ["src/gateway/request/FormBody.ts", "src/policy/facts/UrlEncoded.ts"], (text) =>
    FormBody.read("application/x-www-form-urlencoded", bytes(`model=${text}`), new Set(["model"]))
  ),
  ofText("the head of a part", ["src/gateway/request/FormBody.ts"], (text) =>
    FormBody.read(
      "multipart/form-data; boundary=b",
      bytes(`--b\r\ncontent-disposition: form-data; name="${text}\r\n\r\nx\r\n--b--`),
      new Set(["model"])
    )
  ),
  ofText("headers of a part", ["src/gateway/request/FormBody.ts"], (text) =>
    FormBody.read("multipart/form-data; boundary=b", bytes(`--b\r\n${text}\r\n\r\nx\r\n--b--`), new Set(["model"]))
  ),
  ofText("the content of a part", ["src/gateway/request/FormBody.ts"], (text) =>
    FormBody.read(
      "multipart/form-data; boundary=b",
      bytes(`--b\r\ncontent-disposition: form-data; name="model"\r\n\r\n${text}\r\n--b--`),
      new Set(["model"])
    )
  ),
  ofText("a boundary of dashes", ["src/gateway/request/FormBody.ts"], (text) =>
    FormBody.read(`multipart/form-data; boundary=${"-".repeat(60)}`, bytes(`${"-".repeat(62)}\r\n${text}`), new Set())
  ),
  ofHead("the type of a form", ["src/gateway/request/FormBody.ts"], (text) =>
    FormBody.read(`multipart/form-data; boundary=b; ${text}`, bytes("--b--"), new Set())
  ),
  ofText(
    "text that should be JSON",
    ["src/policy/facts/JsonBounds.ts", "src/policy/facts/Facts.ts"],
    (text) => Facts.parse("chat-completions", bytes(text)),
    thorough
  ),
  ofText(
    "an object that should be JSON",
    ["src/policy/facts/JsonBounds.ts"],
    (text) => JsonBounds.excessOf(`{"a":${text}`),
    thorough
  ),
  ofJson(
    "bodies of conversations",
    ["src/policy/facts/Facts.ts", "src/policy/facts/InputEstimate.ts", "src/policy/facts/NamedModels.ts"],
    (text) => Facts.parse("chat-completions", bytes(text))
  ),
  ofJson(
    "bodies of batches",
    ["src/policy/facts/Facts.ts", "src/policy/facts/JsonMembers.ts", "src/policy/facts/JsonScan.ts"],
    (text) => Facts.parse("message-batches", bytes(`{"requests":[{"params":${text}}]}`))
  ),
  ofJson("members", ["src/policy/facts/JsonMembers.ts", "src/policy/facts/JsonScan.ts"], (text) => [
    JsonMembers.without(text, (key) => key.endsWith("1")),
    JsonMembers.withMember(text, "stream", "true")
  ]),
  ofText("texts of any request", documentFiles, (text) => DocumentText.ofRequest("other", text)),
  ofText("texts of any event", documentFiles, (text) => new EventReader("other").read(undefined, text)),
  ofJson("texts of requests", documentFiles, (text) => [
    DocumentText.ofRequest("chat", `{"messages":[{"content":${text}}]}`),
    DocumentText.ofRequest("messages", text)
  ]),
  ofJson("texts of events", documentFiles, (text) => [
    new EventReader("chat").read(undefined, `{"choices":[{"delta":${text}}]}`),
    new EventReader("responses").read(undefined, `{"type":"response.completed","response":${text}}`),
    new EventReader("other").read(undefined, text)
  ]),
  ofJson(
    "personal data",
    ["src/guardrails/PiiRedact.ts", "src/guardrails/redact/MemberOrder.ts"],
    (text) => PiiRedact.redactResponse(text, anything, "fail_open"),
    thorough
  ),
  ofText("values in plain text", detectorFiles, (text) => scan(detectors, "plain", text), thorough),
  ofText(
    "values in JSON, character by character",
    detectorFiles,
    (text) => {
      const scanner = new Scanner(detectors, "json")
      for (let at = 0; at < text.length; at++) scanner.push(text.charAt(at))
      return scanner.flush()
    },
    { longest: 2_048, cheapMs: 2 }
  ),
  ...(["buffer", "window"] as const).flatMap((streamMode) =>
    ofStream(
      `event streams under an HTTP guardrail, ${streamMode}`,
      [
        "src/guardrails/BufferedStream.ts",
        "src/guardrails/stream/EventTexts.ts",
        "src/guardrails/stream/SseEvents.ts",
        "src/guardrails/stream/TextWindows.ts"
      ],
      () => guardedStream(streamMode)
    )
  ),
  ofJson(
    "replies of guardrails",
    ["src/guardrails/HttpGuardrail.ts"],
    (text) =>
      Effect.runSync(
        HttpGuardrail.call(
          {
            fetch: () =>
              Effect.succeed({ status: 200, headers: {}, body: bytes(`{"action":"modify","request":${text}}`) })
          },
          {
            _tag: "Http",
            streamMode: "buffer",
            windowChars: 512,
            url: "http://g",
            timeoutMs: 1,
            token: { _tag: "Missing" }
          },
          {
            requestId: "r",
            guardrail: "g",
            mode: "pre_call",
            context: {
              key_id: "k",
              team_id: null,
              user_id: null,
              project_id: null,
              model: null,
              route: "r",
              provider: "p"
            },
            config: {},
            text: "{}"
          }
        )
      ),
    thorough
  ),
  ofText("metadata of guardrails", ["src/guardrails/GuardrailOutcome.ts"], (text) =>
    GuardrailOutcome.sanitizeMetadata({ [text]: text })
  ),

  // what upstreams answer
  ...ofStream(
    "guarded streams",
    ["stream/SseEvents", "stream/HeldText", "stream/ChatChoices", "text/Literals", "redact/TextRedactor"].map(
      (name) => `src/guardrails/${name}.ts`
    ),
    () => {
      const stream = new StreamRedactor(Result.getOrThrow(PiiRedact.redactionOf("response", anything)), "chat")
      return (chunk) => stream.push(chunk)
    }
  ),
  ...(
    [
      ["responses", (text) => `{"type":"response.output_text.annotation.added","annotation":${text}}`],
      [
        "responses",
        (text) => `{"type":"response.output_item.done","item":{"type":"shell_call","action":{"commands":${text}}}}`
      ],
      ["chat", (text) => `{"choices":[{"delta":{"reasoning_details":${text}}}]}`],
      ["other", (text) => `{"choices":${text}}`]
    ] satisfies ReadonlyArray<readonly [TextRoute, (text: string) => string]>
  ).map(([route, around], at) =>
    ofNested(`a guarded event that nests deeply, ${route} ${at}`, ["src/guardrails/text/JsonTape.ts"], (text) => {
      const stream = new StreamRedactor(Result.getOrThrow(PiiRedact.redactionOf("response", anything)), route)
      return stream.push(bytes(`data: ${around(text)}\n\n`)) + stream.end()
    })
  ),
  ofText(
    "a guarded stream that ends while all its texts are held",
    ["src/guardrails/stream/HeldText.ts"],
    (text) => {
      const stream = new StreamRedactor(Result.getOrThrow(PiiRedact.redactionOf("response", anything)), "chat")
      const choices = text.split("").map((held, index) => ({ index, delta: { content: `a${held}` } }))
      return stream.push(bytes(`data: ${JSON.stringify({ choices })}\n\n`)) + stream.end()
    },
    { longest: 512, cheapMs: 4 }
  ),
  ofLetters(
    "a guarded text that is never held, letter by letter",
    ["src/guardrails/redact/TextRedactor.ts"],
    (text) => {
      const redaction = new Redaction({ detectors, known: new Map(), restore: true })
      const redactor = new TextRedactor(redaction, { writing: "plain", signed: false })
      redactor.pass("eyJ")
      for (let at = 0; at < text.length; at++) redactor.pass(text.charAt(at))
    }
  ),
  ofText("addresses in guarded texts", ["src/guardrails/redact/LinkContext.ts"], (text) => new LinkContext().add(text)),
  ...ofStream("usage in events", ["src/gateway/usage/UsageTap.ts"], () => tapped(UsageTap.events("a", 1_048_576))),
  ...ofStream("usage in events that is hidden", ["src/gateway/usage/UsageTap.ts"], () =>
    tapped(UsageTap.hidingUsage("a", 1_048_576))
  ),
  ...ofStream("sizes of events", ["src/gateway/forward/SseEventLimit.ts", "src/http/SseLines.ts"], () =>
    SseEventLimit.makeDetector(1_048_576)
  ),
  ...ofStream("refusals that repeat a credential", ["src/gateway/forward/SecretMask.ts"], () => {
    const mask = new SecretMask(Redacted.make("secret ".repeat(8)))
    return (chunk) => mask.push(chunk)
  }),
  ...ofStream("last events", ["src/gateway/forward/SseTerminator.ts"], () => SseTerminator.makeDetector()),
  ...ofStream("objects in events", ["src/gateway/forward/objects/CreatedObjects.ts"], watched("text/event-stream")),
  ...ofStream(
    "objects in one event",
    ["src/gateway/forward/objects/CreatedObjects.ts"],
    watched("text/event-stream", 'data: {"response":"')
  ),
  ...ofStream("objects in an answer", ["src/gateway/forward/objects/CreatedObjects.ts"], watched("application/json")),
  ofJson("usage in an answer", ["src/gateway/usage/UsageTap.ts", "src/gateway/usage/TrailingUsage.ts"], (text) =>
    tapped(UsageTap.json("a", 1_048_576))(bytes(`{"usage":${text}}`)).observed()
  ),
  ofText("what telemetry says of events", ["src/gateway/telemetry/ModelResponse.ts"], (text) => {
    const response = new ModelResponse({ isRecorded: true, now: () => 0, onGap: undefined })
    response.onEvent(bytes(`data: ${text}`))
    response.onEvent(bytes(`data: ${text}"finish_reason":"${text}`))
    return response.facts
  }),
  ofJson(
    "objects that bodies and lists name",
    ["src/policy/routes/UpstreamObjects.ts"],
    (text) => [
      UpstreamObjects.referencedObjects(`{"file_id":"file-1","input":${text}}`, {
        file_id: "file-1",
        input: JSON.parse(text)
      }),
      UpstreamObjects.listedIds(`{"data":[${text}]}`),
      UpstreamObjects.filteredList(`{"data":[${text}]}`, [false])
    ],
    thorough
  ),
  ofJson("keys of an issuer", ["src/identity/KeySet.ts"], (text) => KeySet.parse(`{"keys":[${text}]}`)),
  ofText(
    "OpenAPI documents",
    ["src/control/services/OpenApiDocument.ts"],
    (text) =>
      OpenApiDocument.parse(
        JSON.stringify({
          openapi: "3.1.0",
          info: { title: text, version: text },
          paths: Object.fromEntries(
            text.split(/[,;&\s]/).map((path) => [`/${path}`, { $ref: "#/components/pathItems/a" }])
          ),
          components: { pathItems: { ...Object.fromEntries(text.split(/[,;&\s]/).map((name) => [name, {}])), a: {} } }
        })
      ),
    thorough
  ),
  ofJson("what the studio exports", ["src/control/services/StudioExport.ts"], (text) => isRows(`[${text}]`), thorough),
  ofText("names that the studio gives", ["src/control/services/StudioExport.ts"], (text) =>
    StudioExport.serviceNameOf(text)
  ),
  ofText("cells of an export", ["src/control/usage/UsageExport.ts"], (text) =>
    Effect.runSync(exportedCsv({ team_id: text }))
  ),

  // messages, and what stores say
  ofJson("task envelopes", ["src/messaging/envelope/TaskEnvelope.ts", "src/messaging/envelope/Envelope.ts"], (text) =>
    TaskEnvelope.fromBytes(bytes(`{"task_id":"t","payload":${text}}`), now)
  ),
  ofText("fields of task envelopes", ["src/messaging/envelope/TaskEnvelope.ts"], (text) =>
    TaskEnvelope.fromBytes(bytes(JSON.stringify({ task_id: text, priority: text, created_at: text })), now)
  ),
  ofJson(
    "workflow envelopes",
    ["src/messaging/envelope/Envelope.ts", "src/messaging/envelope/ExactJson.ts"],
    (text) => WorkflowEnvelope.fromBytes(bytes(`{"task_id":"t","payload":${text},"n":9007199254740993}`), "m"),
    thorough
  ),
  ofJson("status events", ["src/messaging/envelope/ExactJson.ts"], (text) =>
    StatusEvent.fromBytes(bytes(`{"task_id":"t","status":"running","meta":${text}}`), now)
  ),
  ofJson("status messages", ["src/messaging/envelope/ExactJson.ts"], (text) =>
    statusReader(bytes(`{"task_id":"t","status":"running","meta":${text}}`), now)
  ),
  ofJson(
    "canonical JSON",
    ["src/messaging/envelope/CanonicalJson.ts"],
    (text) => CanonicalJson.write(JSON.parse(text)),
    thorough
  ),
  ofText(
    "patterns and references of schemas",
    ["src/status/payload/SchemaCheck.ts", "src/status/payload/SchemaPatterns.ts"],
    (text) => [
      SchemaCheck.compare({ pattern: text }, text, "payload"),
      SchemaCheck.compare({ pattern: "^(a|ab|[a-z0-9 ])*$" }, text, "payload"),
      SchemaCheck.compare({ $ref: `#/${text}` }, text, "payload")
    ],
    thorough
  ),
  ofJson("schemas of payloads", ["src/status/payload/SchemaCheck.ts"], (text) => {
    const value: unknown = JSON.parse(text)
    return [
      SchemaCheck.compare(value, value, "payload"),
      SchemaCheck.compare({ items: { $ref: "#" } }, value, "payload")
    ]
  }),
  ofText("bodies of dead letters", ["src/messaging/failure/DeadLetter.ts"], (text) => DeadLetter.bodyOf(bytes(text))),
  ofText(
    "retry headers",
    ["src/messaging/retry/RetryHeaders.ts"],
    (text) => [
      RetryHeaders.count(text),
      RetryHeaders.withoutBrokerHeaders(Object.fromEntries(fieldsOf(text).map((name) => [name, text.slice(0, 10)])))
    ],
    thorough
  ),
  ofText("trace contexts", ["src/messaging/retry/RetryHeaders.ts"], (text) =>
    TraceContext.ofHeaders({ traceparent: text })
  ),
  ofText("timestamps", ["src/messaging/envelope/Timestamp.ts"], (text) => [
    isTimestamp(text),
    Timestamp.isCanonical(text)
  ]),
  ofJson("observations", ["src/messaging/observe/Observation.ts"], (text) => Observation.decode(text), thorough),
  ofText(
    "labels of graphs",
    ["src/graph/Mermaid.ts"],
    (text) =>
      Mermaid.executionGraphMermaid({
        nodes: [...text.slice(0, 200).split("").keys()].map((at) => ({
          id: at === 0 ? text : `${text.slice(0, 20)}${at % 2}`,
          kind: "task",
          label: at === 0 ? text : "",
          timestamp: null,
          task_id: null,
          annotations: {}
        })),
        edges: []
      }),
    thorough
  ),
  ofText("refusals of Redis", ["layers/ioredis/RedisReply.ts"], (text) => [
    RedisReply.refused("command", text),
    RedisReply.refused("command", `ERR Error running script ${text} -${text}`)
  ]),
  ofText("numbers for the memory Redis", ["layers/redis-memory/Arguments.ts"], (text) => [RedisArguments.float(text)]),
  ofText("numbers in digits for the memory Redis", ["layers/redis-memory/Arguments.ts"], (text) =>
    RedisArguments.float(`${text.replaceAll(/[^0-9.]/g, "1")}x`)
  ),
  ofText(
    "requests to the simulator",
    ["layers/simulator/Simulator.ts", "layers/simulator/Json.ts", "layers/simulator/Reply.ts"],
    (text) =>
      simulator.respond(
        {
          method: "POST",
          target: "/v1/chat/completions",
          headers: ["authorization", "Bearer x"],
          body: bytes(JSON.stringify({ model: "m", messages: [{ role: "user", content: text }] }))
        },
        0
      )
  )
]

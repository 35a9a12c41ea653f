import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import fc from "fast-check"
import * as Headers from "../../src/http/Headers.ts"
import {
  authorizationBearer,
  type CredentialStyle,
  refusedHeaderName
} from "../../src/policy/routes/CredentialStyle.ts"

describe("Headers for the upstream", () => {
  it("strips every credential, every x-svc-* and every hop-by-hop field; injects one credential; passes the rest as it came", () => {
    fc.assert(
      fc.property(headerList, style, fc.boolean(), (headers, style, plainAnswer) => {
        const out = Headers.forUpstream(headers, {
          credential,
          style,
          credentialHeaders: ownHeadersOf(style),
          keyHeader,
          gatewayHeaders: own,
          plainResponse: plainAnswer
        })
        const named = namedByConnection(headers)
        const stays = (name: string) =>
          !strippedAlways.includes(name) &&
          !name.startsWith("x-svc-") &&
          !named.includes(name) &&
          !(style._tag === "CustomHeader" && name === style.name.toLowerCase()) &&
          !(plainAnswer && name === "accept-encoding")
        const passed = fields(headers).filter(([name]) => stays(name.toLowerCase()))
        const injected: ReadonlyArray<Field> = [
          injectedBy(style),
          ...(plainAnswer ? [["accept-encoding", "identity"] as const] : []),
          ...own
        ]
        assert.deepStrictEqual(fields(out), [...passed, ...injected])
      }),
      { numRuns: 300 }
    )
  })

  it("lets no client credential through, wherever it is put and however its header is written", () => {
    const canary = "canary-5f1e"
    fc.assert(
      fc.property(
        headerList,
        fc.constantFrom(...credentialHeaders),
        anyCase,
        style,
        fc.boolean(),
        (headers, name, change, style, plainAnswer) => {
          const planted = [...headers, change(name), `Bearer ${canary}`, change(name), canary]
          const out = Headers.forUpstream(planted, {
            credential,
            style,
            credentialHeaders: ownHeadersOf(style),
            keyHeader,
            gatewayHeaders: own,
            plainResponse: plainAnswer
          })
          assert.notInclude(out.join("\n"), canary)
          assert.lengthOf(
            fields(out).filter(([, value]) => value.includes(Redacted.value(credential))),
            1
          )
        }
      ),
      { numRuns: 300 }
    )
  })

  it.each<[CredentialStyle, Field]>([
    [authorizationBearer, ["authorization", "Bearer upstream-secret"]],
    [{ _tag: "CustomHeader", name: "x-upstream-api-key", format: "raw" }, ["x-upstream-api-key", "upstream-secret"]],
    [{ _tag: "CustomHeader", name: "x-upstream-key", format: "bearer" }, ["x-upstream-key", "Bearer upstream-secret"]],
    [{ _tag: "CustomHeader", name: "Api-Key", format: "raw" }, ["Api-Key", "upstream-secret"]]
  ])("presents the credential as the provider row says: %j", (style, field) => {
    const client = ["Authorization", "Bearer rk_live_x", "X-Upstream-Key", "mine", "api-key", "mine"]
    const out = fields(
      Headers.forUpstream(client, {
        credential,
        style,
        credentialHeaders: ownHeadersOf(style),
        keyHeader,
        gatewayHeaders: [],
        plainResponse: false
      })
    )
    assert.deepStrictEqual(out, [field])
  })

  it("takes off credentials by the names that other providers and proxies have for them", () => {
    const names = ["api-key", "X-Goog-Api-Key", "x-litellm-api-key", "x-litellm-key", "Ocp-Apim-Subscription-Key"]
    const others = [
      "x-http-method-override",
      "X-Original-URL",
      "x-rewrite-url",
      "x-override-url",
      "x-amz-security-token",
      "X-Auth-Token",
      "x-access-token",
      "x-functions-key",
      "x-portkey-api-key"
    ]
    const headers = [...names, ...others].flatMap((name) => [name, "canary"])
    const out = Headers.forUpstream([...headers, "x-api-keys", "kept"], {
      ...{
        credential,
        style: authorizationBearer,
        credentialHeaders: [],
        keyHeader,
        gatewayHeaders: [],
        plainResponse: false
      }
    })
    assert.deepStrictEqual(out, ["x-api-keys", "kept", "authorization", "Bearer upstream-secret"])
  })

  it("passes what belongs to the client and the upstream alone: cookies, agent, versions, ids, repetitions, case", () => {
    const headers = [
      ...["Cookie", "a=1", "User-Agent", "openai/7", "anthropic-version", "2023-06-01", "X-Request-Id", "r-1"],
      ...[
        "Accept",
        "a",
        "accept",
        "b",
        "X-Empty",
        "",
        "OpenAI-Beta",
        "assistants=v2",
        "Content-Type",
        "application/json"
      ]
    ]
    assert.deepStrictEqual(
      Headers.forUpstream(headers, {
        credential,
        style: authorizationBearer,
        credentialHeaders: [],
        keyHeader,
        gatewayHeaders: [],
        plainResponse: false
      }),
      [...headers, "authorization", "Bearer upstream-secret"]
    )
  })

  it.each([
    ["a=1; svc_upstream_ui_session=secret; b=2", "a=1; b=2"],
    ["svc_upstream_ui_session=secret; b=2", "b=2"],
    ["__Host-svc_upstream_ui_session=secret", undefined],
    ["svc_upstream_cookie.token=secret;SVC_other=secret", undefined],
    ["mysvc_x=1; a=svc_;;", "mysvc_x=1; a=svc_;;"]
  ])("keeps the gateway's own cookies from the upstream: %s", (cookie, expected) => {
    const out = Headers.forUpstream(["Cookie", cookie, "X-After", "1"], {
      ...{
        credential,
        style: authorizationBearer,
        credentialHeaders: [],
        keyHeader,
        gatewayHeaders: [],
        plainResponse: false
      }
    })
    assert.strictEqual(Headers.get(out, "cookie"), expected)
    assert.strictEqual(Headers.get(out, "x-after"), "1")
  })

  it("lets no operator choose a header for the credential that the gateway strips or sets", () => {
    for (const name of [
      ...strippedAlways.filter((name) => name !== keyHeader && !choosing.includes(name)),
      "x-svc-key",
      "X-Svc-Anything",
      "Content-Type",
      "bad name",
      "",
      "é"
    ]) {
      if (!["x-upstream-api-key", "x-upstream-key"].includes(name)) assert.isString(refusedHeaderName(name), name)
    }
    for (const name of ["x-upstream-api-key", "x-upstream-key", "api-key", "X-Goog-Api-Key"]) {
      assert.isUndefined(refusedHeaderName(name), name)
    }
  })
})

describe("Headers for the client", () => {
  it("drops what was between gateway and upstream, and puts the gateway's own in the place of theirs", () => {
    fc.assert(
      fc.property(headerList, (headers) => {
        const named = namedByConnection(headers)
        const mine: ReadonlyArray<Field> = [
          ["x-request-id", "r-1"],
          ["x-ratelimit-limit-requests", "5"]
        ]
        const dropped = [
          ...hopByHop,
          ...["alt-svc", "authorization", "proxy-authorization", "x-request-id", "x-ratelimit-limit-requests"]
        ]
        const passed = fields(headers).filter(([name]) => {
          const lower = name.toLowerCase()
          return !dropped.includes(lower) && !named.includes(lower) && !lower.startsWith("x-svc-")
        })
        assert.deepStrictEqual(fields(Headers.forClient(headers, mine)), [...passed, ...mine])
      }),
      { numRuns: 300 }
    )
  })

  it("lets no upstream speak for the gateway or its origin", () => {
    const claims = ["X-Svc-Applied-Guardrails", "x-svc-anything", "Strict-Transport-Security", "Clear-Site-Data"]
    const pages = [
      "Access-Control-Allow-Origin",
      "access-control-allow-credentials",
      "Timing-Allow-Origin",
      "Set-Cookie2"
    ]
    const headers = [...claims, ...pages, "Service-Worker-Allowed", "Authorization", "NEL"].flatMap((name) => [
      name,
      "claimed"
    ])
    assert.deepStrictEqual(Headers.forClient([...headers, "etag", "1"], [["x-svc-applied-guardrails", "ours"]]), [
      ...["etag", "1"],
      ...["x-svc-applied-guardrails", "ours"]
    ])
  })

  it("lets only the pages of an exposed UI set cookies, and nobody one of the gateway's own", () => {
    const headers = ["Set-Cookie", "token=1", "set-cookie", "svc_operator=1", "Set-Cookie", "__Host-svc_ui=1; Secure"]
    assert.deepStrictEqual(Headers.forClient(headers, []), [])
    assert.deepStrictEqual(Headers.forClient(headers, [], "browser"), ["Set-Cookie", "token=1"])
  })

  it("never merges repeated cookies", () => {
    const headers = ["Set-Cookie", "a=1", "set-cookie", "b=2", "Set-Cookie", "a=1"]
    assert.deepStrictEqual(Headers.forClient(headers, [], "browser"), headers)
  })
})

describe("Header values", () => {
  it("get finds the first field of a name in any case, and no field of a longer one", () => {
    const headers = ["X-Ab", "long", "x-A", "first", "X-a", "second"]
    assert.deepStrictEqual([Headers.get(headers, "x-a"), Headers.get(headers, "x-abc")], ["first", undefined])
  })

  it.each([
    ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"],
    ["00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01", "4bf92f3577b34da6a3ce929d0e0e4736"],
    ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", undefined],
    ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-extra", undefined],
    ["00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01", undefined],
    ["00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01", undefined],
    ["", undefined],
    [undefined, undefined]
  ])("the trace id of %j is %s", (traceparent, id) => {
    assert.strictEqual(Headers.traceId(traceparent), id)
  })

  it.each([
    ["r-1", true],
    ["!~", true],
    ["x".repeat(128), true],
    ["x".repeat(129), false],
    ["", false],
    ["two words", false],
    ["tab\t", false],
    ["naïve", false],
    ["a\r\nb", false],
    ["\u0000", false]
  ])("an id of %j is fit for logs and headers: %s", (id, fit) => {
    assert.strictEqual(Headers.validClientId(id), fit ? id : undefined)
  })
})

type Field = readonly [name: string, value: string]

const fields = (headers: Headers.RawHeaders): ReadonlyArray<Field> =>
  headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1] ?? ""] as const] : []))

const credential = Redacted.make("upstream-secret")
/** Renamed by an operator. */
const keyHeader = "x-team-key"
const own: ReadonlyArray<Field> = [
  ["x-svc-request-id", "r-1"],
  ["traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]
]

const ownHeadersOf = (style: CredentialStyle) => (style._tag === "CustomHeader" ? [style.name.toLowerCase()] : [])

const injectedBy = (style: CredentialStyle): Field =>
  style._tag === "AuthorizationBearer"
    ? ["authorization", "Bearer upstream-secret"]
    : [style.name, style.format === "raw" ? "upstream-secret" : "Bearer upstream-secret"]

const namedByConnection = (headers: Headers.RawHeaders) =>
  fields(headers).flatMap(([name, value]) =>
    name.toLowerCase() === "connection" ? value.split(",").map((word) => word.trim().toLowerCase()) : []
  )

const hopByHop = [
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer", "transfer-encoding"],
  "upgrade"
]
/** The specification's list ("stripping and injection"), under the names of this deployment. */
const credentialHeaders = [
  ...["authorization", "x-svc-key", "x-aih-api-key", "proxy-authorization", "x-api-key", "x-svc-worker-token"],
  ...["x-upstream-api-key", "x-upstream-key", "x-trusted-gateway-identity", "x-trusted-gateway-signature", keyHeader]
]
/** They choose another upstream or model at some proxies. */
const choosing = ["x-portkey-config", "helicone-target-url", "azureml-model-deployment"]
const strippedAlways = [
  ...hopByHop,
  ...credentialHeaders.filter((name) => !name.startsWith("x-svc-")),
  ...["host", "content-length", "expect", "traceparent"],
  ...choosing
]

const anyCase = fc
  .func(fc.boolean())
  .map((upper) => (name: string) => [...name].map((letter, i) => (upper(i) ? letter.toUpperCase() : letter)).join(""))
const ordinary = [
  "accept",
  "accept-encoding",
  "content-type",
  "cookie",
  "user-agent",
  "x-request-id",
  "x-other",
  "alt-svc"
]
const name = fc
  .tuple(
    fc.constantFrom(
      ...ordinary,
      ...hopByHop,
      ...credentialHeaders,
      "host",
      "content-length",
      "expect",
      ...choosing,
      "traceparent",
      "x-svc-key-id",
      "x-ratelimit-limit-requests"
    ),
    anyCase
  )
  .map(([name, change]) => change(name))
const headerList: fc.Arbitrary<Headers.RawHeaders> = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: fc.tuple(name, fc.string({ maxLength: 8 })) },
      fc.tuple(
        fc.constantFrom("Connection", "connection"),
        fc
          .array(fc.constantFrom("close", "X-Other", "cookie", " user-agent ", "keep-alive"), { maxLength: 3 })
          .map((names) => names.join(","))
      )
    ),
    { maxLength: 12 }
  )
  .map((pairs) => pairs.flat())
const style: fc.Arbitrary<CredentialStyle> = fc.oneof(
  fc.constant(authorizationBearer),
  fc.record({
    _tag: fc.constant("CustomHeader" as const),
    name: fc.constantFrom("x-upstream-api-key", "X-Upstream-Key", "X-Other"),
    format: fc.constantFrom("raw" as const, "bearer" as const)
  })
)

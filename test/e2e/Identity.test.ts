import { createHmac, randomBytes } from "node:crypto"
import { assert, describe, it, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { eventually } from "../Eventually.ts"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as Issuer from "../gateway/Issuer.ts"
import * as IssuerServer from "../gateway/IssuerServer.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import { type Answer, call, codeOf, hello } from "./Calls.ts"

const trustedSecret = `canary-trusted-${randomBytes(12).toString("hex")}`

/** The whole program, told by its environment to ask a provider on this machine who is there. */
class Subject extends Context.Service<
  Subject,
  {
    readonly gateway: RunningGateway.RunningGateway
    readonly issuer: IssuerServer.IssuerServer
    readonly upstream: SimulatorServer.SimulatorServer
    readonly signer: Issuer.SigningKey
    readonly key: string
  }
>()("test/e2e/Identity/Subject") {
  static readonly layer = Layer.effect(
    Subject,
    Effect.gen(function* () {
      const upstream = yield* SimulatorServer.serve()
      const signer = yield* Issuer.signingKey()
      const issuer = yield* IssuerServer.serve(signer)
      const gateway = yield* GatewayOnPostgres.start({ environment: environment(issuer, upstream) })
      const { raw } = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      return Subject.of({ gateway, issuer, upstream, signer, key: raw })
    })
  )
}

const environment = (issuer: IssuerServer.IssuerServer, upstream: SimulatorServer.SimulatorServer) => ({
  LOG_LEVEL: "trace",
  UPSTREAM_BASE_URL: upstream.origin,
  UPSTREAM_SERVICE_KEY: "of-the-start",
  IDENTITY_AUTH_ENABLED: "yes",
  IDENTITY_TENANT_ID: "tenant-1",
  IDENTITY_AUDIENCE: "api://gateway",
  IDENTITY_ISSUER: issuer.issuer,
  IDENTITY_OIDC_DISCOVERY_URL: issuer.discoveryUrl,
  IDENTITY_REQUIRED_SCOPE: "Models.Use",
  IDENTITY_ALLOWED_GROUPS: "group-0, group-1",
  IDENTITY_ACCEPTED_ALGORITHMS: "RS256,ES256",
  IDENTITY_SVC_KEY_HEADER: "X-Team-Key",
  TRUSTED_GATEWAY_HEADER_ENABLED: "1",
  TRUSTED_GATEWAY_HEADER_SECRET: trustedSecret
})

const tokenOf = Effect.fnUntraced(function* (
  signer: Issuer.SigningKey,
  { issuer }: IssuerServer.IssuerServer,
  claims: Readonly<Record<string, unknown>> = {}
) {
  const now = yield* Clock.currentTimeMillis
  return yield* Issuer.sign(signer, Issuer.claimsAt(now, { iss: issuer, ...claims }))
})

const chat = (
  gateway: RunningGateway.RunningGateway,
  headers: Readonly<Record<string, string>>
): Effect.Effect<Answer> =>
  call(gateway, "/v1/chat/completions", undefined, { headers, body: { model: "m", messages: hello } })

const bearing = (token: string, key: string) => ({ authorization: `Bearer ${token}`, "x-team-key": key })

const stated = (secret: string) => {
  const identity = { tenant_id: "tenant-1", scopes: ["Models.Use"], roles: [], groups: ["group-0"] }
  const text = Buffer.from(JSON.stringify(identity)).toString("base64url")
  return {
    "x-trusted-gateway-identity": text,
    "x-trusted-gateway-signature": createHmac("sha256", secret).update(text).digest("base64url")
  }
}

layer(Subject.layer, { excludeTestServices: true })("who is there, over HTTP", (it) => {
  it.effect("a token of the provider or headers of the gateway in front, and a key in the header that was named", () =>
    Effect.gen(function* () {
      const { gateway, issuer, key, signer } = yield* Subject
      const token = yield* tokenOf(signer, issuer)
      const outcomes: ReadonlyArray<readonly [headers: Readonly<Record<string, string>>, code: string | number]> = [
        [bearing(token, key), 200],
        [{ ...stated(trustedSecret), "x-team-key": key }, 200],
        [{ ...stated("another"), ...bearing(token, key) }, "untrusted_gateway_identity"],
        [{ authorization: `Bearer ${key}` }, "malformed_identity_authorization"],
        [{ "x-team-key": key }, "missing_identity_authorization"],
        [{ ...bearing(token, key), "x-team-key": "" }, "missing_authorization"],
        [{ authorization: `Bearer ${token}`, "x-svc-key": key }, "missing_authorization"],
        [bearing(yield* tokenOf(signer, issuer, { exp: 1 }), key), "expired_identity_token"],
        [bearing(yield* tokenOf(signer, issuer, { groups: [] }), key), "insufficient_identity_authorization"]
      ]
      for (const [headers, expected] of outcomes) {
        const answer = yield* chat(gateway, headers)
        assert.strictEqual(answer.status === 200 ? 200 : codeOf(answer), expected)
        if (answer.status !== 200) {
          assert.strictEqual(answer.status, expected === "insufficient_identity_authorization" ? 403 : 401)
        }
      }
      assert.deepStrictEqual(issuer.requests.slice(0, 2), ["/.well-known/openid-configuration", "/keys"])
    })
  )

  it.effect("the SDK of family B gets its own shape of refusal", () =>
    Effect.gen(function* () {
      const { gateway, key } = yield* Subject
      const answer = yield* call(gateway, "/v1/messages", undefined, {
        headers: { "x-team-key": key },
        body: { model: "m", max_tokens: 1, messages: hello }
      })
      assert.match(answer.text, /^\{"type":"error","error":\{"type":"authentication_error"/)
    })
  )

  it.effect(
    "no token, statement, key or secret is in what the upstream gets, in logs, in metrics or in a refusal",
    () =>
      Effect.gen(function* () {
        const { gateway, issuer, key, signer, upstream } = yield* Subject
        const token = yield* tokenOf(signer, issuer, { sub: "canary-user" })
        const refused = yield* tokenOf(signer, issuer, { sub: "canary-user", aud: "elsewhere" })
        const forged = yield* tokenOf(yield* Issuer.signingKey(), issuer, { sub: "canary-user" })
        const statement = stated(trustedSecret)
        const answers = yield* Effect.forEach(
          [
            bearing(token, key),
            bearing(refused, key),
            bearing(forged, key),
            { ...statement, "x-team-key": key },
            { ...stated("another"), "x-team-key": key }
          ],
          (headers) => chat(gateway, headers)
        )
        assert.deepStrictEqual(
          answers.map(({ status }) => status),
          [200, 401, 401, 200, 401]
        )
        const metrics = yield* Effect.promise(async () => (await fetch(`${gateway.control}/admin-ui/metrics`)).text())
        const places = {
          upstream: upstream.requests.map(({ body, rawHeaders }) => rawHeaders.join("\n") + body.toString()).join("\n"),
          output: gateway.output(),
          metrics,
          answers: answers.map(({ headers, text }) => text + JSON.stringify([...headers])).join("\n")
        }
        const secrets = [
          key,
          trustedSecret,
          "canary-user",
          ...[token, refused, forged].flatMap((jwt) => jwt.split(".").slice(1)),
          ...Object.values(statement)
        ]
        for (const [place, text] of Object.entries(places)) {
          for (const secret of secrets) assert.notInclude(text, secret, place)
        }
        assert.match(metrics, /gateway_denials_total\{[^}]*reason="untrusted_gateway_identity"[^}]*\} [1-9]/)
        assert.match(metrics, /gateway_identity_key_refreshes_total\{[^}]*outcome="loaded"[^}]*\} [1-9]/)
      })
  )

  it.effect("a flood of unknown key ids asks the provider once in five seconds, and a rotated key is taken up", () =>
    Effect.gen(function* () {
      const { gateway, issuer, key, signer } = yield* Subject
      const next = yield* Issuer.signingKey(undefined, "ES256")
      const forged = yield* Effect.forEach(Array.from({ length: 50 }), () =>
        Effect.map(tokenOf({ ...signer, kid: randomBytes(6).toString("hex") }, issuer), (token) => bearing(token, key))
      )
      const before = issuer.requests.length
      const startedAt = yield* Clock.currentTimeMillis
      const answers = yield* Effect.forEach([...forged, ...forged], (headers) => chat(gateway, headers), {
        concurrency: 10
      })
      for (const answer of answers) assert.strictEqual(codeOf(answer), "invalid_identity_token")
      const took = (yield* Clock.currentTimeMillis) - startedAt
      assert.isAtMost((issuer.requests.length - before) / 2, 1 + Math.ceil(took / 5_000))
      issuer.keys = [signer, next]
      const rotated = yield* tokenOf(next, issuer)
      yield* eventually(chat(gateway, bearing(rotated, key)), ({ status }) => status === 200)
      assert.strictEqual((yield* chat(gateway, bearing(yield* tokenOf(signer, issuer), key))).status, 200)
    })
  )

  // the last: it changes the settings of the gateway
  it.effect("saved settings are in force on the next request, and the header's old name is no way in", () =>
    Effect.gen(function* () {
      const { gateway, issuer, key, signer, upstream } = yield* Subject
      const token = yield* tokenOf(signer, issuer)
      const patch = (body: object) => Effect.promise(() => gateway.operate("PATCH", "/auth/front-door", body))
      const outcome = (headers: Readonly<Record<string, string>>) =>
        Effect.map(chat(gateway, headers), (answer) => (answer.status === 200 ? "served" : codeOf(answer)))
      const soon = (headers: Readonly<Record<string, string>>, expected: string) =>
        eventually(outcome(headers), (found) => found === expected)
      yield* patch({ svc_key_header: "X-Other-Key" })
      yield* soon(bearing(token, key), "missing_authorization")
      assert.strictEqual(yield* outcome({ authorization: `Bearer ${token}`, "x-other-key": key }), "served")
      assert.notInclude(JSON.stringify(upstream.requests.at(-1)?.rawHeaders), key)
      yield* patch({ svc_key_header: null, required_role: "Admin" })
      yield* soon({ authorization: `Bearer ${token}`, "x-svc-key": key }, "insufficient_identity_authorization")
      yield* patch({ identity_enabled: false, trusted_gateway_header_enabled: false })
      yield* soon({ authorization: `Bearer ${key}` }, "served")
      assert.strictEqual(yield* outcome({ "x-svc-key": key }), "missing_authorization")
    })
  )
})

describe("a provider that cannot be believed", () => {
  it.live("another issuer, a redirect, a key set that does not come in time: nobody is let in, and soon", () =>
    Effect.gen(function* () {
      const upstream = yield* SimulatorServer.serve()
      const signer = yield* Issuer.signingKey()
      const issuer = yield* IssuerServer.serve(signer)
      issuer.claimed = "https://elsewhere.example"
      const gateway = yield* GatewayOnPostgres.start({ environment: environment(issuer, upstream) })
      const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      const token = yield* tokenOf(signer, issuer)
      const outcome = Effect.map(chat(gateway, bearing(token, key.raw)), codeOf)
      assert.strictEqual(yield* outcome, "invalid_identity_issuer")
      issuer.claimed = undefined
      issuer.redirects = true
      yield* eventually(outcome, (code) => code === "invalid_identity_token")
      assert.notInclude(issuer.requests, "/elsewhere")
      issuer.redirects = false
      issuer.keysAfterMs = 10_000
      const asked = issuer.requests.length
      yield* eventually(outcome, () => issuer.requests.length > asked)
      const [before, code, after] = [yield* Clock.currentTimeMillis, yield* outcome, yield* Clock.currentTimeMillis]
      assert.strictEqual(code, "invalid_identity_token")
      assert.isBelow(after - before, 9_000)
      assert.match(gateway.output(), /cannot load the signing keys of the identity provider/)
      assert.deepStrictEqual(upstream.requests, [])
    })
  )

  it.live("at a private address that only an operator named: nobody asks there when those are refused", () =>
    Effect.gen(function* () {
      const upstream = yield* SimulatorServer.serve()
      const signer = yield* Issuer.signingKey()
      const issuer = yield* IssuerServer.serve(signer)
      const named = environment(issuer, upstream)
      const token = yield* tokenOf(signer, issuer)
      const asked = (of: Readonly<Record<string, string>>) =>
        Effect.gen(function* () {
          const gateway = yield* GatewayOnPostgres.start({
            environment: { ...of, GATEWAY_EGRESS_PRIVATE_ADDRESSES: "refuse" }
          })
          const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
          const settings = { oidc_discovery_url: issuer.discoveryUrl }
          yield* Effect.promise(() => gateway.operate("PATCH", "/auth/front-door", settings))
          return { code: codeOf(yield* chat(gateway, bearing(token, key.raw))), output: gateway.output() }
        })
      const elsewhere = yield* asked({
        ...named,
        IDENTITY_OIDC_DISCOVERY_URL: "http://identity.example/.well-known/openid-configuration"
      })
      assert.strictEqual(elsewhere.code, "invalid_identity_token")
      assert.match(elsewhere.output, /the discovery document cannot be fetched \(refused_address\)/)
      assert.deepStrictEqual(issuer.requests, [])
      // whoever sets the environment owns the machine
      assert.match((yield* asked(named)).code, /chat\.completion/)
      assert.isNotEmpty(issuer.requests)
    })
  )
})

import { createHmac, randomBytes } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import type { ErrorCode } from "../../src/gateway/GatewayError.ts"
import { Database } from "../../src/services/Database.ts"
import { eventually } from "../Eventually.ts"
import * as RealTime from "../RealTime.ts"
import * as Egress from "../ScriptedEgress.ts"
import * as Issuer from "./Issuer.ts"
import * as Proxy from "./Proxy.ts"
import { make as wireOf } from "./RecordingWire.ts"
import * as SavedAuthSettings from "./SavedAuthSettings.ts"
import * as Upstream from "./ScriptedUpstream.ts"

const ask = (
  gateway: Effect.Success<ReturnType<typeof Proxy.make>>,
  headers: ReadonlyArray<string>,
  target: string = Proxy.chat
) => gateway.ask({ target, headers, body: { model: "m" } })

const codeOf = ({ status, text }: { readonly status: number | undefined; readonly text: string }) => [
  status,
  JSON.parse(text).error?.code
]

layer(Proxy.database)("ProxyApp, with an identity provider", (it) => {
  it.effect("lets a token and a key in, and forwards neither; one discovery serves every request", () =>
    Effect.gen(function* () {
      const { gateway, issuer, key, token } = yield* started()
      for (const _ of [1, 2, 3]) {
        assert.strictEqual((yield* ask(gateway, bearing(token, key))).status, 200)
      }
      assert.deepStrictEqual(issuer.requests, [Issuer.discoveryUrl, "https://issuer.test/keys"])
      const sent = JSON.stringify(gateway.sent)
      for (const secret of [token, key.raw]) assert.notInclude(sent, secret)
      assert.include(sent, "Bearer startup-secret")
      assert.lengthOf(yield* gateway.records, 3)
    })
  )

  it.effect.each(["RS384", "RS512", "ES256", "ES384", "ES512"])("accepts %s where it is configured", (alg) =>
    Effect.gen(function* () {
      const signer = yield* Issuer.signingKey("k", alg)
      const { gateway, key } = yield* started({ settings: { accepted_algorithms: [alg] }, keys: [signer] })
      const token = yield* Issuer.sign(signer, Issuer.claimsAt(Proxy.noon))
      assert.strictEqual((yield* ask(gateway, bearing(token, key))).status, 200)
    })
  )

  it.effect("refuses what is no token of the provider, before it looks at the key", () =>
    Effect.gen(function* () {
      const { gateway, issuer, signer } = yield* started()
      const key = { raw: `rk_live_${"0".repeat(64)}` }
      const claims = Issuer.claimsAt(Proxy.noon)
      const good = yield* Issuer.sign(signer, claims)
      const [header = "", payload = "", signature = ""] = good.split(".")
      const stranger = yield* Issuer.signingKey(signer.kid)
      const elliptic = yield* Issuer.signingKey(signer.kid, "ES256")
      const confused = [{ alg: "HS256", kid: signer.kid }, claims]
        .map((value) => Buffer.from(JSON.stringify(value)).toString("base64url"))
        .join(".")
      const publicKey = JSON.stringify(signer.jwk)
      const bearers: ReadonlyArray<readonly [string, ErrorCode]> = [
        ["", "malformed_identity_authorization"],
        ["one.two", "malformed_identity_authorization"],
        [`${good}.more`, "malformed_identity_authorization"],
        ["a.b.c", "malformed_identity_authorization"],
        [key.raw, "malformed_identity_authorization"],
        [unsigned(claims), "invalid_identity_token"],
        [
          `${confused}.${createHmac("sha256", publicKey).update(confused).digest("base64url")}`,
          "invalid_identity_token"
        ],
        [yield* Issuer.sign(stranger, claims), "invalid_identity_token"],
        [yield* Issuer.sign(elliptic, claims), "invalid_identity_token"],
        [yield* Issuer.sign(signer, claims, { kid: 7 }), "invalid_identity_token"],
        [yield* Issuer.sign(signer, claims, { kid: "unknown" }), "invalid_identity_token"],
        [`${header}.${payload}.${signature.slice(0, -4)}AAAA`, "invalid_identity_token"],
        [
          `${header}.${Buffer.from(JSON.stringify({ ...claims, roles: ["Admin"] })).toString("base64url")}.${signature}`,
          "invalid_identity_token"
        ]
      ]
      assert.deepStrictEqual(codeOf(yield* ask(gateway, keyed(key))), [401, "missing_identity_authorization"])
      for (const [bearer, code] of bearers) {
        const headers = ["authorization", `Bearer ${bearer}`, ...keyed(key)]
        assert.deepStrictEqual(codeOf(yield* ask(gateway, headers)), [401, code], bearer)
      }
      assert.deepStrictEqual(codeOf(yield* ask(gateway, ["authorization", good, ...keyed(key)])), [
        401,
        "malformed_identity_authorization"
      ])
      assert.deepStrictEqual(codeOf(yield* ask(gateway, bearing(good, key))), [401, "invalid_virtual_key"])
      assert.isAtMost(issuer.requests.length, 2)
      assert.deepStrictEqual([gateway.sent, yield* gateway.records], [[], []])
    })
  )

  it.effect("takes the key from the configured header alone", () =>
    Effect.gen(function* () {
      const { gateway, key, token } = yield* started({ settings: { svc_key_header: "X-Team-Key" } })
      const authorization = ["authorization", `Bearer ${token}`]
      const refusals: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
        [[], "missing_authorization"],
        [["x-svc-key", key.raw], "missing_authorization"],
        [["x-aih-api-key", key.raw], "missing_authorization"],
        [["x-api-key", key.raw], "missing_authorization"],
        [["x-team-key", " "], "missing_authorization"],
        [["x-team-key", "sk-something"], "malformed_authorization"],
        [["x-team-key", `Bearer ${key.raw}`], "malformed_authorization"],
        [["x-team-key", "rk_live_short"], "malformed_authorization"]
      ]
      for (const [headers, code] of refusals) {
        for (const target of [Proxy.chat, Proxy.messages]) {
          assert.deepStrictEqual(codeOf(yield* ask(gateway, [...authorization, ...headers], target)), [401, code])
        }
      }
      assert.strictEqual((yield* ask(gateway, [...authorization, "X-TEAM-key", key.raw])).status, 200)
    })
  )

  it.effect("strips the key's header under every name that it has, also when it is renamed while running", () =>
    Effect.gen(function* () {
      const { gateway, key, token } = yield* started()
      yield* SavedAuthSettings.save({ svc_key_header: "X-Team-Key" })
      const headers = ["authorization", `Bearer ${token}`, "x-team-key", key.raw, "x-svc-key", key.raw]
      yield* RealTime.effect(
        eventually(
          ask(gateway, ["authorization", `Bearer ${token}`, "x-team-key", key.raw]),
          ({ status }) => status === 200
        )
      )
      assert.strictEqual((yield* ask(gateway, headers)).status, 200)
      assert.notInclude(JSON.stringify(gateway.sent), key.raw)
      assert.deepStrictEqual(codeOf(yield* ask(gateway, bearing(token, key))), [401, "missing_authorization"])
    })
  )

  it.effect("remembers a token until it expires, its keys are replaced, or the settings change", () =>
    Effect.gen(function* () {
      const { gateway, issuer, key, signer, token } = yield* started()
      const short = yield* Issuer.sign(signer, Issuer.claimsAt(Proxy.noon, { exp: Proxy.noon / 1000 + 100 }))
      const outcome = (bearer: string) => Effect.map(ask(gateway, bearing(bearer, key)), codeOf)
      assert.deepStrictEqual([yield* outcome(short), yield* outcome(token)], [served, served])
      yield* TestClock.adjust("159 seconds")
      assert.deepStrictEqual(yield* outcome(short), served)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* outcome(short), [401, "expired_identity_token"])
      assert.lengthOf(issuer.requests, 2)
      issuer.keys = [yield* Issuer.signingKey()]
      yield* TestClock.adjust("139 seconds")
      assert.deepStrictEqual(yield* outcome(token), served)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* outcome(token), [401, "invalid_identity_token"])
      assert.lengthOf(issuer.requests, 4)
      issuer.keys = [signer]
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* outcome(token), served)
      yield* SavedAuthSettings.save({ required_role: "Admin" })
      yield* RealTime.effect(eventually(outcome(token), ([status]) => status === 403))
      assert.lengthOf(issuer.requests, 6)
    })
  )

  it.effect("takes up a rotated key at once, and asks at most once in five seconds, whatever comes in", () =>
    Effect.gen(function* () {
      const { gateway, issuer, key, signer, token } = yield* started()
      assert.strictEqual((yield* ask(gateway, bearing(token, key))).status, 200)
      yield* TestClock.adjust("5 seconds")
      const next = yield* Issuer.signingKey()
      issuer.keys = [signer, next]
      const rotated = yield* Issuer.sign(next, Issuer.claimsAt(Proxy.noon))
      assert.strictEqual((yield* ask(gateway, bearing(rotated, key))).status, 200)
      assert.lengthOf(issuer.requests, 4)
      const flood = Effect.forEach(
        Array.from({ length: 100 }),
        () =>
          Effect.flatMap(
            Issuer.sign(signer, Issuer.claimsAt(Proxy.noon), { kid: randomBytes(4).toString("hex") }),
            (forged) => Effect.map(ask(gateway, bearing(forged, key)), codeOf)
          ),
        { concurrency: "unbounded" }
      )
      for (const code of yield* flood) assert.deepStrictEqual(code, [401, "invalid_identity_token"])
      assert.lengthOf(issuer.requests, 4)
      yield* TestClock.adjust("5 seconds")
      yield* flood
      yield* flood
      assert.lengthOf(issuer.requests, 6)
      assert.strictEqual((yield* ask(gateway, bearing(token, key))).status, 200)
    })
  )

  it.effect("goes on with the keys that it has while the provider is down, and waits for it once", () =>
    Effect.gen(function* () {
      const { gateway, issuer, key, signer, token } = yield* started()
      const other = yield* Issuer.sign(signer, Issuer.claimsAt(Proxy.noon, { sub: "user-2" }))
      const outcome = (bearer: string) => Effect.map(ask(gateway, bearing(bearer, key)), codeOf)
      assert.deepStrictEqual(yield* outcome(token), served)
      issuer.broken = Issuer.slow
      yield* TestClock.adjust("300 seconds")
      assert.deepStrictEqual([yield* outcome(token), yield* outcome(other)], [served, served])
      assert.lengthOf(issuer.requests, 3)
      // now it hangs: the attempt is under way, and nobody who brings a known key waits for it
      const answered = yield* Deferred.make<never>()
      issuer.broken = Deferred.await(answered)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual([yield* outcome(token), yield* outcome(other)], [served, served])
      assert.lengthOf(issuer.requests, 4)
    })
  )

  it.effect.each<[what: string, breaks: Partial<Issuer.Issuer>, code: ErrorCode]>([
    ["a discovery document of another issuer", { issuer: "https://elsewhere.test" }, "invalid_identity_issuer"],
    ["documents that do not come", { broken: Issuer.slow }, "invalid_identity_token"],
    ["an error page", { broken: Effect.succeed({ status: 503, body: "{}" }) }, "invalid_identity_token"],
    ["no JSON", { broken: Effect.succeed({ status: 200, body: "<html>" }) }, "invalid_identity_token"],
    ["a set that is none", { broken: Effect.succeed({ status: 200, body: '{"keys":1}' }) }, "invalid_identity_token"],
    ["no keys", { keys: [] }, "invalid_identity_token"]
  ])("lets nobody in on %s", ([, breaks, code]) =>
    Effect.gen(function* () {
      const { gateway, issuer, key, token } = yield* started()
      Object.assign(issuer, breaks)
      for (const _ of [1, 2]) {
        const wire = yield* ask(gateway, bearing(token, key))
        assert.deepStrictEqual(codeOf(wire), [401, code])
        // nothing is wrong with the token, so that it is not said
        if (breaks.broken !== undefined) assert.include(wire.text, "could not load the keys of the identity provider")
      }
      assert.isAtMost(issuer.requests.length, 2)
    })
  )

  it.effect("serves others when the client that caused a look-up of keys hangs up", () =>
    Effect.gen(function* () {
      const { gateway, issuer, key, token } = yield* started()
      const released = yield* Deferred.make<void>()
      const asked = yield* Deferred.make<void>()
      const whole = issuer.fetch
      const holding: Issuer.Issuer["fetch"] = (request) =>
        Deferred.succeed(asked, undefined).pipe(
          Effect.andThen(Deferred.await(released)),
          Effect.andThen(whole(request))
        )
      Object.assign(issuer, { fetch: holding })
      const wire = wireOf({ target: Proxy.chat, headers: bearing(token, key), body: {} })
      const first = yield* Effect.forkChild(gateway.handle(wire))
      yield* Deferred.await(asked)
      const second = yield* Effect.forkChild(ask(gateway, bearing(token, key)))
      yield* Fiber.interrupt(first)
      yield* Deferred.succeed(released, undefined)
      assert.strictEqual((yield* Fiber.join(second)).status, 200)
      assert.strictEqual(wire.status, undefined)
    })
  )

  it.effect("says nothing of a token or a key in answers and logs", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logged = Effect.provide(Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))]))
      yield* Effect.gen(function* () {
        const { gateway, issuer, key, signer } = yield* started()
        issuer.broken = Issuer.slow
        const answers: Array<string> = []
        for (const claims of [{}, { aud: "other" }, { exp: 1 }, { scp: "" }]) {
          const token = yield* Issuer.sign(signer, Issuer.claimsAt(Proxy.noon, { ...claims, sub: "canary-user" }))
          const wire = yield* ask(gateway, bearing(token, key))
          answers.push(wire.text, JSON.stringify(wire.received))
          for (const piece of token.split(".")) assert.notInclude([...answers, ...lines].join("\n"), piece)
          issuer.broken = undefined
          yield* TestClock.adjust("5 seconds")
        }
        assert.notInclude([...answers, ...lines].join("\n"), key.raw)
        assert.notInclude([...answers, ...lines].join("\n"), "canary-user")
        assert.include(
          lines.join("\n"),
          "cannot load the signing keys of the identity provider; only keys already loaded stay valid"
        )
      }).pipe(logged)
    })
  )
})

layer(Proxy.database)("ProxyApp, behind a trusted gateway", (it) => {
  const trusting = { trusted_gateway_header_enabled: true, identity_enabled: false } as const

  it.effect("lets a signed identity and a key in; what else is in Authorization counts for nothing", () =>
    Effect.gen(function* () {
      const { gateway, key } = yield* started({ settings: trusting })
      for (const authorization of [[], ["authorization", "Bearer whatever"], ["authorization", `Bearer ${key.raw}`]]) {
        const wire = yield* ask(gateway, [...SavedAuthSettings.signed({}), ...keyed(key), ...authorization])
        assert.strictEqual(wire.status, 200)
      }
      const sent = JSON.stringify(gateway.sent)
      for (const secret of ["trusted-gateway", key.raw, "whatever"]) assert.notInclude(sent.toLowerCase(), secret)
    })
  )

  it.effect("tells guardrails and the record who the identity is of", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const guarded = sql`INSERT INTO guardrail_definitions
        (name, description, provider_kind, modes, failure_policy, endpoint_url, timeout_ms)
        VALUES ('who', '', 'http', '{pre_call}', 'fail_closed', 'https://guard.test/check', 1500)`
      const gateway = yield* Proxy.make({
        configured: Effect.andThen(guarded, SavedAuthSettings.save(trusting)),
        egress: Egress.says({ action: "allow" })
      })
      const key = yield* Proxy.issueKey({}, { guardrails: { mandatory_guardrails: ["who"] } })
      yield* ask(gateway, [...SavedAuthSettings.signed({ subject: "ada" }), ...keyed(key)])
      yield* ask(gateway, [...SavedAuthSettings.signed({}), ...keyed(key)])
      assert.deepStrictEqual(
        gateway.asked.map(({ text }) => JSON.parse(text).context.user_id),
        ["ada", null]
      )
      assert.deepStrictEqual(
        (yield* gateway.records).map(({ subject }) => subject),
        ["ada", null]
      )
    })
  )

  it.effect("refuses a pair that is not whole, not signed or not in time, and asks nobody else", () =>
    Effect.gen(function* () {
      const { gateway, key, token } = yield* started({ settings: { ...trusting, identity_enabled: true } })
      const [, identity = "", , signature = ""] = SavedAuthSettings.signed({})
      const pairs: ReadonlyArray<ReadonlyArray<string>> = [
        ["x-trusted-gateway-identity", identity],
        ["x-trusted-gateway-signature", signature],
        ["x-trusted-gateway-identity", identity, "x-trusted-gateway-signature", `${signature}=`],
        ["x-trusted-gateway-identity", identity, "x-trusted-gateway-signature", signature.replace(/^./, "*")],
        ["x-trusted-gateway-identity", identity, "x-trusted-gateway-signature", "AAAA"],
        SavedAuthSettings.signed({ expires_at: Proxy.noon / 1000 - 61 }),
        SavedAuthSettings.signed({ tenant_id: "tenant-2" }),
        SavedAuthSettings.signed({}, "another-secret")
      ]
      for (const pair of pairs) {
        // with a token that would do: there is no way round
        const wire = yield* ask(gateway, [...pair, ...bearing(token, key)])
        assert.deepStrictEqual(codeOf(wire), [401, "untrusted_gateway_identity"], pair.join(" "))
      }
      assert.deepStrictEqual(codeOf(yield* ask(gateway, SavedAuthSettings.signed({}))), [401, "missing_authorization"])
      assert.strictEqual((yield* ask(gateway, bearing(token, key))).status, 200)
    })
  )

  it.effect("has no other way in when there is no identity provider", () =>
    Effect.gen(function* () {
      const { gateway, issuer, key, token } = yield* started({ settings: trusting })
      for (const headers of [keyed(key), key.headers, bearing(token, key)]) {
        const wire = yield* ask(gateway, headers)
        assert.deepStrictEqual(codeOf(wire), [401, "missing_identity_authorization"])
        // a token would be asked for in vain
        assert.match(wire.text, /x-trusted-gateway-identity and x-trusted-gateway-signature/)
      }
      assert.deepStrictEqual(issuer.requests, [])
    })
  )

  it.effect("ends a captured pair when its time is over", () =>
    Effect.gen(function* () {
      const { gateway, key } = yield* started({ settings: trusting })
      const pair = [...SavedAuthSettings.signed({ expires_at: Proxy.noon / 1000 + 30 }), ...keyed(key)]
      assert.strictEqual((yield* ask(gateway, pair)).status, 200)
      yield* TestClock.adjust("90 seconds")
      assert.deepStrictEqual(codeOf(yield* ask(gateway, pair)), [401, "untrusted_gateway_identity"])
    })
  )
})

layer(Proxy.database)("ProxyApp, in direct mode with an identity asked for", (it) => {
  const direct = Proxy.configureRoute("chat-completions", { mode: "direct_upstream_passthrough" })

  it.effect("delegates what is the upstream's own, and never an identity or a gateway key", () =>
    Effect.gen(function* () {
      const { gateway, key, signer, token } = yield* started({ route: direct })
      const foreign = yield* Issuer.sign(signer, Issuer.claimsAt(Proxy.noon, { iss: "https://upstream.own" }))
      const expired = yield* Issuer.sign(signer, Issuer.claimsAt(Proxy.noon, { exp: 1 }))
      const outcomes: ReadonlyArray<readonly [headers: ReadonlyArray<string>, outcome: ReadonlyArray<unknown>]> = [
        [["authorization", "Bearer sk-own"], served],
        [["authorization", `Bearer ${foreign}`], served],
        [bearing(token, key), served],
        [
          ["authorization", `Bearer ${token}`],
          [401, "missing_authorization"]
        ],
        [
          ["authorization", `Bearer ${expired}`],
          [401, "expired_identity_token"]
        ],
        [
          ["authorization", "Bearer sk-own", ...keyed(key)],
          [401, "malformed_identity_authorization"]
        ],
        [
          ["authorization", "Bearer sk-own", "x-renamed-since", key.raw],
          [401, "malformed_identity_authorization"]
        ],
        [key.headers, [401, "malformed_identity_authorization"]],
        [keyed(key), [401, "missing_identity_authorization"]],
        [
          ["authorization", `Bearer op_live_${"0".repeat(64)}`],
          [401, "malformed_authorization"]
        ],
        [[], [401, "missing_authorization"]]
      ]
      for (const [headers, expected] of outcomes) {
        assert.deepStrictEqual(codeOf(yield* ask(gateway, headers)), expected, headers.join(" "))
      }
      const sent = JSON.stringify(gateway.sent)
      for (const secret of [token, expired, key.raw]) assert.notInclude(sent, secret)
      assert.include(sent, "Bearer sk-own")
      assert.include(sent, foreign)
      assert.lengthOf(yield* gateway.records, 1)
    })
  )
})

layer(Proxy.database)("ProxyApp, without identities", (it) => {
  it.effect("takes the key from Authorization, and a key header is no substitute and no use", () =>
    Effect.gen(function* () {
      const { gateway, issuer, key, token } = yield* started({ settings: { identity_enabled: false } })
      assert.strictEqual((yield* ask(gateway, key.headers)).status, 200)
      assert.deepStrictEqual(codeOf(yield* ask(gateway, keyed(key))), [401, "missing_authorization"])
      assert.deepStrictEqual(codeOf(yield* ask(gateway, bearing(token, key))), [401, "malformed_authorization"])
      assert.strictEqual((yield* ask(gateway, [...key.headers, "x-team-key", "canary"])).status, 200)
      assert.include(JSON.stringify(gateway.sent), "canary")
      yield* SavedAuthSettings.save({ svc_key_header: "X-Team-Key", identity_enabled: false })
      const strips = Effect.map(ask(gateway, [...key.headers, "x-team-key", "canary"]), () => gateway.sent.at(-1))
      yield* RealTime.effect(eventually(strips, (sent) => !JSON.stringify(sent).includes("canary")))
      assert.deepStrictEqual(issuer.requests, [])
    })
  )
})

const served = [200, undefined]

const unsigned = (claims: object) =>
  `${[{ alg: "none", kid: "k" }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".")}.`

/** A gateway whose identity provider has one key, a token of it, and a gateway key. */
const started = Effect.fnUntraced(function* (
  options: {
    readonly settings?: SavedAuthSettings.Changed
    readonly keys?: ReadonlyArray<Issuer.SigningKey>
    readonly route?: Effect.Effect<void, unknown, Database>
  } = {}
) {
  const signer = options.keys?.[0] ?? (yield* Issuer.signingKey())
  const issuer = Issuer.make(...(options.keys ?? [signer]))
  const gateway = yield* Proxy.make({
    configured: Effect.andThen(options.route ?? Effect.void, SavedAuthSettings.save(options.settings ?? {})),
    issuer: (request) => issuer.fetch(request),
    upstream: Upstream.json({ id: "answer" })
  })
  const key = yield* Proxy.issueKey()
  const token = yield* Issuer.sign(signer, Issuer.claimsAt(Proxy.noon))
  return { gateway, issuer, key, signer, token }
})

const keyed = ({ raw }: Pick<Proxy.IssuedKey, "raw">) => ["x-svc-key", raw]
const bearing = (token: string, key: Pick<Proxy.IssuedKey, "raw">) => [
  "authorization",
  `Bearer ${token}`,
  ...keyed(key)
]

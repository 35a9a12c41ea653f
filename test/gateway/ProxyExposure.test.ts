import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { ExposureDecision } from "../../src/policy/routes/Exposure.ts"
import { AdminApiExposure, UiExposure } from "../../src/policy/routes/Passthrough.ts"
import * as RawConnection from "../RawConnection.ts"
import * as Expected from "./ExposureTable.ts"
import * as Issuer from "./Issuer.ts"
import * as Proxy from "./Proxy.ts"
import * as SavedAuthSettings from "./SavedAuthSettings.ts"
import * as Served from "./Served.ts"

const anyMethod = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

type Answered = readonly [status: number, code: string | undefined]

/** How each decision looks from outside, by who asked. No identity is known here, so nobody gets past `forbidden`. */
const answers: Readonly<Record<ExposureDecision, Answered>> = {
  forward: [200, undefined],
  unsupported: [404, "unsupported_route"],
  unauthenticated: [401, "missing_authorization"],
  forbidden: [403, "insufficient_identity_authorization"]
}

layer(Proxy.database)("Exposure over HTTP", (it) => {
  for (const ui_exposure of UiExposure.literals) {
    for (const admin_api_exposure of AdminApiExposure.literals) {
      it.effect(`ui ${ui_exposure}, admin ${admin_api_exposure}: what reaches the upstream, and for whom`, () =>
        Effect.gen(function* () {
          const settings = {
            allowed_paths: Expected.everyPath,
            allowed_methods: anyMethod,
            ownership: "shared" as const,
            ui_exposure,
            admin_api_exposure
          }
          const gateway = yield* Proxy.make({ configured: Proxy.openWildcard(settings) })
          const key = yield* Proxy.issueKey()
          const origin = yield* Served.origin(gateway.handle)
          let forwarded = 0
          let recorded = 0
          for (const { group, method, path } of Expected.requests) {
            for (const caller of ["nobody", "key"] as const) {
              const decision = Expected.decision(ui_exposure, admin_api_exposure, group, caller)
              const open = Expected.decision(ui_exposure, admin_api_exposure, group, "nobody") === "forward"
              const answer = yield* ask(origin, method, `${path}?q=%2F..`, caller === "key" ? bearer(key) : {})
              const what = `${method} ${path} by ${caller}`
              assert.deepStrictEqual(answer, answers[decision], what)
              if (decision === "forward") {
                forwarded++
                const last = gateway.sent.at(-1)
                assert.deepInclude(last, { method, target: `${path}?q=%2F..` }, what)
                assert.isTrue(last?.headers.includes("Bearer startup-secret"), what)
                // from a trusted ingress nobody is known, whatever was sent along
                assert.strictEqual(last?.headers.includes(key.id), !open && caller === "key", what)
                if (!open) recorded++
              }
            }
          }
          assert.lengthOf(gateway.sent, forwarded)
          const records = yield* gateway.records
          assert.lengthOf(records, recorded)
          for (const record of records) {
            assert.deepInclude(record, {
              route: "/upstream/*",
              provider: "upstream",
              usage_source: "status_only",
              cost_source: "none",
              cost_mode: "none",
              status_code: 200
            })
          }
        })
      )
    }
  }

  it.effect("disguises of a sensitive path never reach the upstream while nothing is exposed", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard({ allowed_paths: ["/*"], allowed_methods: anyMethod, ownership: "shared" })
      })
      const key = yield* Proxy.issueKey()
      const origin = yield* Served.origin(gateway.handle)
      const forms = Expected.sensitive.flatMap(Expected.disguises)
      assert.isAbove(forms.length, 1500)
      yield* sendRaw(origin, bearer(key), forms)
      assert.deepStrictEqual(
        gateway.sent.map(({ target }) => target),
        []
      )
    })
  )

  it.effect("no detour leads out of the allowed paths, nor a changed case, method or delimiter", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard({
          allowed_paths: ["/v1/files/*", "/exact"],
          allowed_methods: ["GET"],
          ownership: "shared"
        })
      })
      const key = yield* Proxy.issueKey()
      const origin = yield* Served.origin(gateway.handle)
      const ups = ["..", "%2e%2e", "%2E.", ".%2e", "..;", "..%2f", "..%5c", "%2e%2e%2f", "%c0%ae%c0%ae", "%252e%252e"]
      const forms = [
        ...ups.flatMap((up) => [
          `/v1/files/${up}`,
          `/v1/files/${up}/`,
          `/v1/files/${up}/x`,
          `/v1/files/${up}/${up}/key/generate`,
          `/v1/files/a/${up}/${up}/models`,
          `/exact/${up}/x`,
          `/v1/${up}/v1/files/x`
        ]),
        ...["/v1/files", "/V1/files/x", "/v1/Files/x", "/v1/filesx", "/v1/file", "/v1/%46iles/x", "/v1//files/x"],
        ...["/exact/", "/exact/x", "/exactx", "/Exact", "/exact%20", "/exact;x", "/exact%3fx", "/exact%00", "/x/exact"],
        ...["//v1/files/x", "/./v1/files/x", "/v1/files//x", "/v1/files/./x", "\\v1\\files\\x", "v1/files/x", "*"],
        ...[`${origin}/v1/files/x`, "http://elsewhere.test/v1/files/x"]
      ]
      yield* sendRaw(origin, bearer(key), forms)
      for (const method of anyMethod.filter((method) => method !== "GET")) {
        assert.deepStrictEqual((yield* ask(origin, method, "/v1/files/x", bearer(key)))[0], 404, method)
      }
      assert.deepStrictEqual(gateway.sent, [])
      for (const path of ["/v1/files/", "/v1/files/x", "/v1/%66iles/a%20b/c", "/exact", "/%65xact?../.."]) {
        assert.deepStrictEqual(yield* ask(origin, "GET", path, bearer(key)), [200, undefined], path)
      }
      assert.deepStrictEqual(
        gateway.sent.map(({ target }) => target),
        ["/v1/files/", "/v1/files/x", "/v1/%66iles/a%20b/c", "/exact", "/%65xact?../.."]
      )
    })
  )
})

/**
 * Who calls while an identity is asked for: what it brings, who that makes it in the table, and how it is sent away.
 */
interface Bringing {
  readonly brings: Fields
  readonly caller: Expected.Caller
  readonly sentAway: string
}

/** The specification's way in is both, one beside the other; each of the two alone is nobody. */
const bringings = (key: Proxy.IssuedKey): Readonly<Record<string, Bringing>> => {
  const keyed = { "x-svc-key": key.raw }
  const nobody = (brings: Fields, sentAway: string): Bringing => ({ brings, caller: "nobody", sentAway })
  return {
    nobody: nobody({}, "missing_identity_authorization"),
    "the key alone": nobody(keyed, "missing_identity_authorization"),
    "the key as a bearer": nobody(bearer(key), "missing_identity_authorization"),
    "an identity alone": nobody(fields(SavedAuthSettings.signed()), "missing_authorization"),
    "an identity, and the key as a bearer": nobody(
      { ...fields(SavedAuthSettings.signed()), ...bearer(key) },
      "missing_authorization"
    ),
    "an identity that is not signed, and the key": nobody(
      { ...fields(SavedAuthSettings.signed({}, "another")), ...keyed },
      "untrusted_gateway_identity"
    ),
    "an identity of another tenant, and the key": nobody(
      { ...fields(SavedAuthSettings.signed({ tenant_id: "tenant-2" })), ...keyed },
      "untrusted_gateway_identity"
    ),
    "an identity and the key": {
      brings: { ...fields(SavedAuthSettings.signed()), ...keyed },
      caller: "identified",
      sentAway: "nothing"
    }
  }
}

const trusting = SavedAuthSettings.save({ identity_enabled: false, trusted_gateway_header_enabled: true })

layer(Proxy.database)("Exposure over HTTP, with an identity asked for", (it) => {
  for (const ui_exposure of UiExposure.literals) {
    for (const admin_api_exposure of AdminApiExposure.literals) {
      it.effect(`ui ${ui_exposure}, admin ${admin_api_exposure}: what reaches the upstream, and for whom`, () =>
        Effect.gen(function* () {
          const settings = {
            allowed_paths: Expected.everyPath,
            allowed_methods: anyMethod,
            ownership: "shared" as const,
            ui_exposure,
            admin_api_exposure
          }
          const gateway = yield* Proxy.make({ configured: Effect.andThen(Proxy.openWildcard(settings), trusting) })
          const key = yield* Proxy.issueKey()
          const origin = yield* Served.origin(gateway.handle)
          let forwarded = 0
          let recorded = 0
          for (const { group, method, path } of Expected.requests) {
            const open = Expected.decision(ui_exposure, admin_api_exposure, group, "nobody") === "forward"
            for (const [name, { brings, caller, sentAway }] of Object.entries(bringings(key))) {
              const decision = Expected.decision(ui_exposure, admin_api_exposure, group, caller)
              const what = `${method} ${path} by ${name}`
              const expected = decision === "unauthenticated" ? ([401, sentAway] as const) : answers[decision]
              assert.deepStrictEqual(yield* ask(origin, method, path, brings), expected, what)
              if (decision !== "forward") continue
              forwarded++
              if (!open) recorded++
              const last = gateway.sent.at(-1)
              assert.deepInclude(last, { method, target: path, origin: "https://upstream.test" }, what)
              assert.include(last?.headers ?? [], "Bearer startup-secret", what)
              assert.strictEqual(last?.headers.includes(key.id), !open, what)
              for (const brought of Object.values(brings)) assert.notInclude(last?.headers ?? [], brought, what)
            }
          }
          assert.lengthOf(gateway.sent, forwarded)
          assert.lengthOf(yield* gateway.records, recorded)
        })
      )
    }
  }

  it.effect("a token of the provider is an identity as good as any, for every pair of modes", () =>
    Effect.gen(function* () {
      const signer = yield* Issuer.signingKey()
      const token = yield* Issuer.sign(signer, Issuer.claimsAt(Proxy.noon))
      const expired = yield* Issuer.sign(signer, Issuer.claimsAt(Proxy.noon, { exp: 1 }))
      const outsider = yield* Issuer.sign(signer, Issuer.claimsAt(Proxy.noon, { groups: [] }))
      const issuer = Issuer.make(signer)
      const samples = [...new Map(Expected.requests.map((request) => [request.group, request])).values()]
      for (const ui_exposure of UiExposure.literals) {
        for (const admin_api_exposure of AdminApiExposure.literals) {
          const settings = {
            allowed_paths: Expected.everyPath,
            allowed_methods: anyMethod,
            ownership: "shared" as const,
            ui_exposure,
            admin_api_exposure
          }
          const gateway = yield* Proxy.make({
            configured: Effect.andThen(Proxy.openWildcard(settings), SavedAuthSettings.save({})),
            issuer: (request) => issuer.fetch(request)
          })
          const key = yield* Proxy.issueKey()
          const origin = yield* Served.origin(gateway.handle)
          const keyed = { "x-svc-key": key.raw }
          const callers: ReadonlyArray<readonly [brings: Fields, caller: Expected.Caller, sentAway: Answered]> = [
            [keyed, "nobody", [401, "missing_identity_authorization"]],
            [bearer(key), "nobody", [401, "malformed_identity_authorization"]],
            [{ authorization: `Bearer ${token}` }, "nobody", [401, "missing_authorization"]],
            [{ authorization: `Bearer ${expired}`, ...keyed }, "nobody", [401, "expired_identity_token"]],
            [{ authorization: `Bearer ${outsider}`, ...keyed }, "nobody", [403, "insufficient_identity_authorization"]],
            // headers of a gateway that is not trusted here are worth nothing
            [{ ...fields(SavedAuthSettings.signed()), ...keyed }, "nobody", [401, "missing_identity_authorization"]],
            [{ authorization: `Bearer ${token}`, ...keyed }, "identified", answers.forward]
          ]
          for (const { group, method, path } of samples) {
            for (const [brings, caller, sentAway] of callers) {
              const decision = Expected.decision(ui_exposure, admin_api_exposure, group, caller)
              const expected = decision === "unauthenticated" ? sentAway : answers[decision]
              const what = `${method} ${path}, ui ${ui_exposure}, admin ${admin_api_exposure}: ${JSON.stringify(brings)}`
              const before = gateway.sent.length
              assert.deepStrictEqual(yield* ask(origin, method, path, brings), expected, what)
              assert.strictEqual(gateway.sent.length - before, decision === "forward" ? 1 : 0, what)
            }
          }
          const sent = JSON.stringify(gateway.sent)
          for (const secret of [key.raw, token, expired, outsider]) assert.notInclude(sent, secret)
        }
      }
    })
  )

  it.effect("no disguise gets a key into what is for operators, nor an operator into what is closed", () =>
    Effect.gen(function* () {
      const forms = Expected.sensitive.flatMap(Expected.disguises)
      const everything = { allowed_paths: ["/*", "/rerank"], allowed_methods: anyMethod, ownership: "shared" } as const
      const operators = { ui_exposure: "operator_only", admin_api_exposure: "operator_only" } as const
      const restricted = yield* Proxy.make({
        configured: Effect.andThen(Proxy.openWildcard({ ...everything, ...operators }), trusting)
      })
      const key = yield* Proxy.issueKey()
      const people = bringings(key)
      const outside = yield* Served.origin(restricted.handle)
      for (const name of ["the key alone", "an identity alone", "an identity that is not signed, and the key"]) {
        const { brings = {}, sentAway } = people[name] ?? {}
        yield* Effect.forEach(
          forms,
          (form) =>
            Effect.map(ask(outside, "GET", form, brings), (answered) => {
              assert.include([400, 401, 404], answered[0], `GET ${form} by ${name}`)
              if (answered[0] === 401) assert.strictEqual(answered[1], sentAway)
            }),
          { concurrency: 8, discard: true }
        )
      }
      assert.deepStrictEqual(restricted.sent, [])
      const closed = yield* Proxy.make({ configured: Effect.andThen(Proxy.openWildcard(everything), trusting) })
      const known = yield* Proxy.issueKey()
      const both = bringings(known)["an identity and the key"]?.brings ?? {}
      const origin = yield* Served.origin(closed.handle)
      yield* sendRaw(origin, both, forms)
      assert.deepStrictEqual(closed.sent, [])
      assert.deepStrictEqual(yield* ask(origin, "GET", "/v1/files", both), answers.forward)
    })
  )

  it.effect("registered services are no way around, under any writing of their paths", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Effect.all([
          Proxy.openWildcard({
            allowed_paths: ["/*", "/internal/*", "/ocr"],
            allowed_methods: anyMethod,
            ownership: "shared"
          }),
          trusting,
          Proxy.registerService("key", { allowed_methods: ["GET"] }),
          Proxy.registerService("inner", { allowed_methods: ["GET"], route_pattern: "/internal/inner/*" }),
          Proxy.registerService("exact", { allowed_methods: ["GET"], route_pattern: "/internal/exact" }),
          Proxy.registerService("ocr", { allowed_methods: ["POST"], route_pattern: "/ocr" })
        ])
      })
      const key = yield* Proxy.issueKey({ allowed_services: ["key", "inner", "exact", "ocr"] })
      const both = bringings(key)["an identity and the key"]?.brings ?? {}
      const origin = yield* Served.origin(gateway.handle)
      const ups = ["..", "%2e%2e", "..;", "..%2f", "..%5c", "%c0%ae%c0%ae", "%252e%252e"]
      const bases = ["/services/key", "/internal/inner", "/internal/exact", "/ocr", "/services"]
      yield* sendRaw(origin, both, [
        ...Expected.sensitive.flatMap(Expected.disguises),
        ...Expected.sensitive,
        ...bases.flatMap((base) =>
          ups.flatMap((up) => [`${base}/${up}/key/list`, `${base}/${up}/${up}/key/list`, `${base}/${up}/${up}/ui/`])
        ),
        // in the place of a service, and never of the wildcard
        ...["/services", "/services/", "/services/Key", "/services/KEY/list", "/services/nobody/x", "/services/ui"],
        ...["/Services/key/list", "/SERVICES/key", "/services%20/key", "/%ef%bd%93ervices/key", "/services./key"],
        ...["/services/key%2flist", "/services//key", "/services/./key/list", "/services/key;x/list"]
      ])
      assert.deepStrictEqual(gateway.sent, [])
      for (const [path, service, target] of [
        ["/services/key/list?q=/../ui", "key", "/list?q=/../ui"],
        ["/s%65rvices/key/ui/", "key", "/ui/"],
        ["/internal/inner/key/list", "inner", "/key/list"],
        ["/internal/inner", "inner", "/"],
        ["/internal/exact", "exact", "/internal/exact"],
        // whatever a service makes of it, it is the service's own
        ["/services/key/%ef%bc%8e%ef%bc%8e/key/list", "key", "/%ef%bc%8e%ef%bc%8e/key/list"]
      ] as const) {
        assert.deepStrictEqual(yield* ask(origin, "GET", path, both), answers.forward, path)
        assert.deepInclude(gateway.sent.at(-1), { origin: `https://${service}.test`, target }, path)
        assert.include(gateway.sent.at(-1)?.headers ?? [], `Bearer ${service}-secret`, path)
      }
      // a path beside the pattern, or a method that the service has not, is an ordinary path of the upstream
      for (const [method, path] of [
        ["GET", "/internal/innerx"],
        ["GET", "/internal/exact/below"],
        ["DELETE", "/internal/inner/x"],
        ["GET", "/ocr"]
      ] as const) {
        assert.deepStrictEqual(yield* ask(origin, method, path, both), answers.forward, path)
        assert.deepInclude(gateway.sent.at(-1), { origin: "https://upstream.test", target: path }, path)
      }
      // neither service nor wildcard without both
      const before = gateway.sent.length
      for (const [name, { brings, caller, sentAway }] of Object.entries(bringings(key))) {
        if (caller === "identified") continue
        for (const path of ["/services/key/list", "/internal/inner/x", "/internal/innerx"]) {
          assert.deepStrictEqual(yield* ask(origin, "GET", path, brings), [401, sentAway], `${path} by ${name}`)
        }
      }
      assert.lengthOf(gateway.sent, before)
    })
  )

  it.effect(
    "what a deployment names as its UI's own is open behind a trusted ingress, for reading, and nothing else",
    () =>
      Effect.gen(function* () {
        const gateway = yield* Proxy.make({
          configured: Effect.andThen(
            Proxy.openWildcard({
              allowed_paths: ["/*"],
              allowed_methods: anyMethod,
              ownership: "shared" as const,
              ui_exposure: "trusted_ingress"
            }),
            trusting
          ),
          settings: { upstreamUiPaths: ["/Acme/.well-known/ui-config", "/acme-assets/*", "/user/available"] }
        })
        const origin = yield* Served.origin(gateway.handle)
        for (const path of ["/Acme/.well-known/ui-config", "/acme-assets/a/b.js", "/user/available", "/user/info"]) {
          assert.deepStrictEqual(yield* ask(origin, "GET", path, {}), answers.forward, path)
          assert.deepInclude(gateway.sent.at(-1), { target: path })
        }
        const open = gateway.sent.length
        const asked = [401, "missing_identity_authorization"] as const
        for (const [method, path, expected] of [
          ["POST", "/acme-assets/a", asked],
          ["GET", "/acme-assets", answers.unsupported],
          ["GET", "/acme-assetsx/a", answers.unsupported],
          ["GET", "/acme/.well-known/ui-config", answers.unsupported],
          ["GET", "/Acme/.well-known/ui-config/x", answers.unsupported],
          ["GET", "/Acme", answers.unsupported],
          ["GET", "/user/available/x", answers.unsupported],
          ["DELETE", "/user/available", answers.unsupported],
          ["GET", "/user/%61vailable%20", answers.unsupported],
          ["GET", "/acme-assets/../key/list", answers.unsupported]
        ] as const) {
          assert.deepStrictEqual(yield* ask(origin, method, path, {}), expected, `${method} ${path}`)
        }
        assert.lengthOf(gateway.sent, open)
      })
  )
})

type Fields = Readonly<Record<string, string>>

/** Names and values in pairs, as an object. */
const fields = (pairs: ReadonlyArray<string>): Fields =>
  Object.fromEntries(pairs.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), pairs[i + 1] ?? ""]] : [])))

const bearer = ({ raw }: Proxy.IssuedKey): Fields => ({ authorization: `Bearer ${raw}` })

/** A request as bytes, and the status and code of its answer. */
const ask = (origin: string, method: string, target: string, headers: Fields) =>
  Effect.gen(function* () {
    const connection = yield* RawConnection.open(origin)
    connection.write(RawConnection.request(`${method} ${target}`, { connection: "close", ...headers }))
    const received = yield* connection.closed
    return summary(received)
  }).pipe(Effect.scoped)

const summary = (received: string): Answered => {
  const { body, status } = RawConnection.answerOf(received)
  const code = /"code":"(\w+)"/.exec(body.toString())?.[1]
  return [status, code]
}

/** Sends each target with every method that may carry it, and asserts that the gateway answered it itself. */
const sendRaw = (origin: string, headers: Fields, targets: ReadonlyArray<string>) =>
  Effect.forEach(
    targets,
    (target) =>
      Effect.map(ask(origin, "GET", target, headers), ([status]) => {
        assert.isTrue(status === 404 || status === 400, `GET ${target} was answered ${status}`)
      }),
    { concurrency: 8, discard: true }
  )

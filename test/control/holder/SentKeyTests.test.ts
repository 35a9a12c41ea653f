import { createServer } from "node:http"
import { assert, describe, layer as describeWith } from "@effect/vitest"
import { Deferred, Effect, Exit, Layer, Option, Ref, type Schema } from "effect"
import { type HttpClient, HttpServer } from "effect/http"
import * as OwnGatewayHttp from "../../../layers/roles/OwnGateway.ts"
import { OwnGateway, type SendToGateway } from "../../../src/control/holder/OwnGateway.ts"
import { type BoundAddress, GatewayAddress } from "../../../src/process/GatewayAddress.ts"
import { Database } from "../../../src/services/Database.ts"
import { EgressError } from "../../../src/services/Egress.ts"
import { Redis } from "../../../src/services/Redis.ts"
import type { Exchange } from "../../../src/services/Upstream.ts"
import * as ScriptedUpstream from "../../gateway/ScriptedUpstream.ts"
import * as Served from "../../gateway/Served.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import { portOf } from "../../upstream/SimulatorServer.ts"
import * as Listener from "../Listener.ts"
import { admin, at, call, ok, refusalOf } from "../Listener.ts"
import * as Metered from "../limits/Metered.ts"

const me = "/admin-ui/v1/me"
const sameOrigin = { "sec-fetch-site": "same-origin" }
const hostile = `<img src=x onerror=alert(1)> \u202e`

/** The address of the proxy listener, and the change of requests that a test has put between it and the control listener. */
const address = Ref.makeUnsafe(Option.none<BoundAddress>())
const between = Ref.makeUnsafe(Option.none<(send: SendToGateway) => SendToGateway>())

const ownGateway = Layer.effect(
  OwnGateway,
  Effect.map(OwnGateway, (found) =>
    Effect.gen(function* () {
      const change = Option.getOrElse(yield* Ref.get(between), () => (send: SendToGateway) => send)
      return Option.map(yield* found, change)
    })
  )
).pipe(Layer.provide(OwnGatewayHttp.layer(Option.none())), Layer.provide(Layer.succeed(GatewayAddress, address)))

const servers = Listener.layer(TemporaryDatabase.layer, { redis: TemporaryPrefix.layer, ownGateway })

/** An answer of a model in all protocols. */
const answers = ScriptedUpstream.json({
  choices: [{ message: { content: "h" } }],
  output: [],
  content: [],
  usage: { prompt_tokens: 4, completion_tokens: 1, total_tokens: 5 }
})

/** A gateway on a socket, at the address that the control listener knows. */
const gateway = Effect.fnUntraced(function* (upstream: ScriptedUpstream.Script = answers) {
  yield* Ref.set(between, Option.none())
  const running = yield* Metered.gateway(upstream)
  const { port } = new URL(yield* Served.origin(running.handle))
  yield* Ref.set(address, Option.some({ host: "localhost", ip: "127.0.0.1", port: Number(port) }))
  return running
})

const intercept = (change: (send: SendToGateway) => SendToGateway) => Ref.set(between, Option.some(change))

const signIn = Effect.fnUntraced(function* (token: string) {
  const answer = yield* call("POST", "/admin-ui/session", { authorization: null, headers: sameOrigin, body: { token } })
  assert.strictEqual(answer.status, 200, answer.text)
  const cookie = String(answer.headers["set-cookie"]).split(";", 1)[0] ?? ""
  return { ...sameOrigin, cookie, "x-svc-csrf": String(at(answer.json, "csrf", "value")) }
})

type Page = Readonly<Record<string, string>>

const test = (page: Page, body: object = {}) =>
  call("POST", `${me}/test`, {
    authorization: null,
    headers: page,
    body: { protocol: "chat", model: Metered.model, send: true, ...body }
  })

const sent = (page: Page, body: object = {}) =>
  Effect.map(test(page, body), ({ json, status, text }) => {
    assert.strictEqual(status, 200, text)
    return Object(at(json, "sent"))
  })

const holder = Effect.fnUntraced(function* (settings: object = {}) {
  const key = yield* Metered.newKey(settings)
  return { key, page: yield* signIn(key.raw) }
})

/** Everything in the database and in Redis, as text. */
const stored = Effect.gen(function* () {
  const { sql } = yield* Database
  const redis = yield* Redis
  const tables = yield* sql<{ readonly name: string }>`SELECT quote_ident(table_name) AS name
    FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`
  assert.isAbove(tables.length, 20)
  const rows = yield* Effect.forEach(tables, ({ name }) => sql`SELECT t::text AS line FROM ${sql.literal(name)} t`)
  const names = yield* redis.command("KEYS", redis.key("*"))
  assert(Array.isArray(names))
  const values = yield* Effect.forEach(names, (name) => redis.command("DUMP", String(name)))
  return JSON.stringify([rows, names, values.map(String)])
})

/** Takes a request, never answers, and sees its connection close. */
const silentServer = Effect.gen(function* () {
  const [begun, ended] = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()]
  const server = yield* Effect.acquireRelease(
    Effect.sync(() =>
      createServer((request) => {
        Deferred.doneUnsafe(begun, Exit.void)
        request.socket.on("close", () => Deferred.doneUnsafe(ended, Exit.void))
      })
    ),
    (server) => Effect.sync(() => server.close())
  )
  yield* Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void)))
  return { begun, ended, port: portOf(server.address()) }
})

const jsonOf = (text: string | undefined): Schema.Json => JSON.parse(text ?? "null")

describe.skipIf(TemporaryDatabase.server === null || TemporaryPrefix.server === null)("on servers", () =>
  describeWith(servers, { excludeTestServices: true })("The test of a key that sends a request", (it) => {
    it.effect("sends the fewest tokens of each protocol with the key of the session, as a request of the key", () =>
      Effect.gen(function* () {
        yield* Metered.priced
        const running = yield* gateway()
        const { key, page } = yield* holder({ policy: { max_requests_per_day: 3 } })
        const expected = [
          ["chat", "/v1/chat/completions", { max_tokens: 1 }],
          ["responses", "/v1/responses", { max_output_tokens: 16, store: false }],
          ["messages", "/v1/messages", { max_tokens: 1 }]
        ] as const
        const ids: Array<unknown> = []
        for (const [protocol, path, members] of expected) {
          const outcome = yield* sent(page, { protocol })
          assert.deepInclude(outcome, {
            outcome: "works",
            status_code: 200,
            error_code: null,
            provider_message: null,
            input_tokens: 4,
            output_tokens: 1,
            cost_usd: 0.05
          })
          assert.isAtLeast(outcome.latency_ms, 0)
          ids.push(outcome.request_id)
          const last = running.sent.at(-1)
          assert.strictEqual(last?.target, path)
          assert.deepInclude(Object(jsonOf(last?.text)), members)
          assert.notInclude(JSON.stringify(last), key.raw)
        }
        // the limit is used up now, so that nothing more is sent
        const fourth = yield* test(page)
        assert.deepInclude(Object(fourth.json), { allowed: false, meter: "max_requests_per_day", sent: null })
        assert.lengthOf(running.sent, 3)
        yield* running.written
        const own = yield* ok("GET", `${me}/requests`, { authorization: `Bearer ${key.raw}` })
        const rows = at(own, "rows")
        assert(Array.isArray(rows))
        assert.sameMembers(
          rows.map((row) => at(row, "request_id")),
          ids
        )
        assert.isTrue(rows.every((row) => at(row, "estimated_cost_usd") === 0.05))
      })
    )

    it.effect("sends nothing if it is not to, or if the gateway would refuse the request", () =>
      Effect.gen(function* () {
        const running = yield* gateway()
        const { page } = yield* holder({ policy: { allowed_models: [Metered.model] } })
        for (const body of [{ send: false }, { send: undefined }]) {
          assert.deepInclude(Object((yield* test(page, body)).json), { allowed: true, sent: null, not_sent: null })
        }
        assert.deepInclude(Object((yield* test(page, { model: "another" })).json), {
          allowed: false,
          sentence: "This key may not use this model.",
          sent: null,
          not_sent: null
        })
        assert.lengthOf(running.sent, 0)
      })
    )

    it.effect("also sends with the key that a program presents", () =>
      Effect.gen(function* () {
        yield* gateway()
        const key = yield* Metered.newKey({})
        for (const headers of [{ authorization: `Bearer ${key.raw}` }, { "x-api-key": key.raw }]) {
          assert.strictEqual((yield* sent(headers)).outcome, "works")
        }
      })
    )

    it.effect("says what a refusal of the model provider was, as foreign text of bounded length", () =>
      Effect.gen(function* () {
        const key = yield* Metered.newKey({})
        const page = yield* signIn(key.raw)
        const cases: ReadonlyArray<readonly [ScriptedUpstream.Script, object]> = [
          [
            ScriptedUpstream.json({ error: { message: `no such model ${hostile}`, code: "model_not_found" } }, 404),
            {
              outcome: "refused_by_provider",
              status_code: 404,
              error_code: null,
              provider_message: `no such model ${hostile}`.trim(),
              sentence: "The model provider refused the request with status 404.",
              what_to_do: "Your key works. Check the name of the model."
            }
          ],
          [
            ScriptedUpstream.json({ error: "overloaded" }, 529),
            { outcome: "refused_by_provider", status_code: 529, provider_message: "overloaded" }
          ],
          [
            ScriptedUpstream.answers(500, ["content-type", "text/html"], `<h1>${"😀".repeat(600)}`),
            { outcome: "refused_by_provider", status_code: 500, provider_message: `<h1>${"😀".repeat(248)}` }
          ],
          [
            ScriptedUpstream.json({ detail: `wrong key ${key.raw.slice(0, 12)} ${key.raw}` }, 401),
            { outcome: "refused_by_provider", provider_message: `wrong key ${key.raw.slice(0, 12)} rk_live_…` }
          ],
          // one that speaks as the gateway does, but does not know the id
          [
            ScriptedUpstream.json({ error: { code: "budget_exceeded", message: "pay", request_id: "x" } }, 402),
            { outcome: "refused_by_provider", error_code: null, provider_message: "pay" }
          ]
        ]
        for (const [script, outcome] of cases) {
          yield* gateway(script)
          assert.deepInclude(yield* sent(page), outcome)
        }
      })
    )

    it.effect("knows an answer of a model from anything else", () =>
      Effect.gen(function* () {
        const { page } = yield* holder()
        const scripts = [
          ScriptedUpstream.json({}),
          ScriptedUpstream.json([]),
          ScriptedUpstream.json({ choices: "many" }),
          ScriptedUpstream.answers(200, ["content-type", "application/json"], "[".repeat(60_000)),
          ScriptedUpstream.answers(200, ["content-type", "application/json"], `{"choices":${"x".repeat(70_000)}`),
          ScriptedUpstream.json({ choices: [], padding: "x".repeat(70_000) })
        ]
        for (const script of scripts) {
          yield* gateway(script)
          assert.deepInclude(yield* sent(page), { outcome: "unreadable", status_code: 200, cost_usd: null })
        }
        yield* gateway(ScriptedUpstream.json({ choices: [], usage: { prompt_tokens: -1, completion_tokens: "all" } }))
        const other = yield* holder()
        assert.deepInclude(yield* sent(other.page), {
          outcome: "works",
          input_tokens: null,
          output_tokens: null,
          cost_usd: null
        })
      })
    )

    it.effect("names the limit of tokens as newer models want it, if they refuse the older name", () =>
      Effect.gen(function* () {
        const refusal = ScriptedUpstream.json({ error: { message: "Use 'max_completion_tokens' instead." } }, 400)
        const isNewer = ({ body }: Exchange) =>
          body instanceof Uint8Array && Buffer.from(body).includes("max_completion_tokens")
        const running = yield* gateway((sink, request) => (isNewer(request) ? answers : refusal)(sink, request))
        const { page } = yield* holder()
        assert.strictEqual((yield* sent(page)).outcome, "works")
        assert.lengthOf(running.sent, 2)
        assert.notProperty(Object(jsonOf(running.sent[1]?.text)), "max_tokens")
        // only in this protocol, and only once
        const always = yield* gateway(refusal)
        assert.strictEqual((yield* sent(page, { protocol: "messages" })).status_code, 400)
        assert.lengthOf(always.sent, 1)
        assert.strictEqual((yield* sent(page)).status_code, 400)
        assert.lengthOf(always.sent, 3)
      })
    )

    it.effect("tells the gateway's own refusals from those of the model provider", () =>
      Effect.gen(function* () {
        const running = yield* gateway(ScriptedUpstream.fails("connect", "refused"))
        const { key, page } = yield* holder()
        for (const protocol of ["chat", "messages"]) {
          assert.deepInclude(yield* sent(page, { protocol }), {
            outcome: "refused_by_gateway",
            error_code: "upstream_connection",
            provider_message: null,
            sentence: "The model provider could not be reached."
          })
        }
        // the key is revoked after the decision and before the request
        const context = yield* Effect.context<HttpClient.HttpClient>()
        const revoked = Effect.andThen(
          ok("POST", `${admin}/keys/${key.id}/revoke`),
          Effect.repeat(running.ask(Metered.chatOf(key)), { until: ({ status }) => status === 401 })
        ).pipe(Effect.provideContext(context), Effect.orDie)
        yield* intercept((send) => (request) => Effect.andThen(revoked, send(request)))
        assert.deepInclude(yield* sent(page), {
          outcome: "refused_by_gateway",
          status_code: 401,
          error_code: "revoked_virtual_key",
          sentence: "The key was revoked."
        })
        assert.strictEqual((yield* test(page)).status, 401)
      })
    )

    it.effect("says when no answer came, within a deadline", () =>
      Effect.gen(function* () {
        yield* gateway()
        const { page } = yield* holder()
        const asked: Array<unknown> = []
        const fails = (reason: EgressError["reason"]) =>
          intercept(() => (request) => {
            asked.push([request.withinMs, request.maxBytes])
            return Effect.fail(new EgressError({ reason, message: "secret of operators" }))
          })
        const outcomes: Array<unknown> = []
        for (const reason of ["timeout", "unreachable", "redirect", "malformed", "refused_address"] as const) {
          yield* fails(reason)
          const answer = yield* test(page)
          assert.notInclude(answer.text, "secret of operators")
          outcomes.push(at(answer.json, "sent", "outcome"))
        }
        assert.deepStrictEqual(outcomes, ["timeout", "unreachable", "unreachable", "unreachable", "unreachable"])
        assert.deepStrictEqual(asked[0], [20_000, 65_536])
      })
    )

    it.effect("ends when the client goes away", () =>
      Effect.gen(function* () {
        const { begun, ended, port } = yield* silentServer
        yield* gateway()
        const served = yield* Ref.getAndSet(address, Option.some({ host: "localhost", ip: "127.0.0.1", port }))
        const { page } = yield* holder()
        const leaving = new AbortController()
        const url = yield* HttpServer.addressFormattedWith(Effect.succeed)
        yield* Effect.forkChild(
          Effect.promise(() =>
            fetch(`${url}${me}/test`, {
              method: "POST",
              headers: { ...page, "content-type": "application/json" },
              body: JSON.stringify({ protocol: "chat", model: "m", send: true }),
              signal: leaving.signal
            }).catch(() => {})
          )
        )
        yield* Deferred.await(begun)
        // one at a time
        assert.strictEqual((yield* test(page)).status, 429)
        leaving.abort()
        yield* Deferred.await(ended)
        yield* Ref.set(address, served)
        const again = yield* Effect.repeat(test(page), { until: ({ status }) => status === 200 })
        assert.strictEqual(at(again.json, "sent", "outcome"), "works")
      })
    )

    it.effect("sends six times a minute for a key", () =>
      Effect.gen(function* () {
        const running = yield* gateway()
        const { page } = yield* holder()
        for (let i = 0; i < 6; i++) assert.strictEqual((yield* test(page)).status, 200)
        const seventh = yield* test(page)
        assert.deepStrictEqual(refusalOf(seventh), { status: 429, code: "key_test_busy", param: null })
        assert.isAtLeast(Number(seventh.headers["retry-after"]), 1)
        assert.strictEqual((yield* test(page, { send: false })).status, 200)
        assert.lengthOf(running.sent, 6)
        assert.strictEqual((yield* test((yield* holder()).page)).status, 200)
      })
    )

    it.effect("is nothing that another origin can cause", () =>
      Effect.gen(function* () {
        const running = yield* gateway()
        const { page } = yield* holder()
        const { "x-svc-csrf": _, ...withoutProof } = page
        for (const headers of [
          withoutProof,
          { ...page, "sec-fetch-site": "cross-site" },
          { ...page, "sec-fetch-site": "same-site" },
          { ...page, "x-svc-csrf": "0".repeat(64) }
        ]) {
          assert.strictEqual((yield* test(headers)).status, 403)
        }
        assert.lengthOf(running.sent, 0)
      })
    )

    it.effect("leaves the key in no table, no counter and no answer", () =>
      Effect.gen(function* () {
        const running = yield* gateway()
        const { key, page } = yield* holder()
        const cookie = String(page.cookie).split("=")[1] ?? ""
        const answer = yield* test(page)
        assert.strictEqual(at(answer.json, "sent", "outcome"), "works")
        yield* running.written
        const everything = yield* stored
        const secret = key.raw.slice("rk_live_".length)
        for (const hidden of [secret, cookie, Buffer.from(key.raw).toString("base64").slice(0, 40)]) {
          assert.isAbove(hidden.length, 30)
          assert.notInclude(everything, hidden)
          assert.notInclude(answer.text, hidden)
        }
      })
    )

    it.effect("opens the key with the cookie of its session alone, and only as it was sealed", () =>
      Effect.gen(function* () {
        const running = yield* gateway()
        const { sql } = yield* Database
        const first = yield* holder()
        const page = yield* signIn(first.key.raw)
        const second = yield* holder()
        const sealed = yield* sql<{ readonly key: string; readonly sealed: string }>`
          SELECT key_id AS key, key_under_cookie AS sealed FROM operator_sessions
          WHERE key_id IN (${first.key.id}, ${second.key.id})`
        assert.lengthOf(new Set(sealed.map((row) => row.sealed)), 3)
        const tampered: ReadonlyArray<string | null> = [
          null,
          "",
          "clear.rk_live_1",
          ...sealed.filter(({ key }) => key === second.key.id).map((row) => row.sealed),
          ...sealed.map((row) => `${row.sealed.slice(0, -8)}AAAAAAAA`)
        ]
        for (const text of tampered) {
          yield* sql`UPDATE operator_sessions SET key_under_cookie = ${text} WHERE key_id = ${first.key.id}`
          for (const of of [page, first.page]) {
            assert.deepInclude(Object((yield* test(of)).json), {
              allowed: true,
              sent: null,
              not_sent: {
                sentence: "Nothing was sent: this session does not have your key.",
                what_to_do: "Sign out and sign in again."
              }
            })
          }
        }
        assert.lengthOf(running.sent, 0)
        assert.strictEqual((yield* sent(yield* signIn(first.key.raw))).outcome, "works")
      })
    )

    it.effect("keeps no token of an operator", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        yield* signIn(Listener.operatorToken)
        const kept =
          yield* sql`SELECT 1 FROM operator_sessions WHERE token_id IS NOT NULL AND key_under_cookie IS NOT NULL`
        assert.lengthOf(kept, 0)
        yield* Effect.flip(sql`UPDATE operator_sessions SET key_under_cookie = 'x' WHERE token_id IS NOT NULL`)
      })
    )

    it.effect("uses the secret of the session while a rotation lets it, and then the new one", () =>
      Effect.gen(function* () {
        yield* gateway()
        const { page } = yield* holder({ holder_rotation: true })
        const rotate = (headers: Page, seconds: number) =>
          Effect.map(
            ok("POST", `${me}/rotate`, { authorization: null, headers, body: { grace_seconds: seconds } }),
            (json) => String(at(json, "raw_key"))
          )
        const renewed = yield* signIn(yield* rotate(page, 3_600))
        for (const held of [page, renewed]) assert.strictEqual((yield* sent(held)).outcome, "works")
        const last = yield* signIn(yield* rotate(renewed, 0))
        assert.strictEqual((yield* test(renewed)).status, 401)
        assert.strictEqual((yield* sent(last)).outcome, "works")
      })
    )

    it.effect("says why nothing was sent where it cannot", () =>
      Effect.gen(function* () {
        const running = yield* gateway()
        const { page } = yield* holder()
        const why = Effect.map(test(page), ({ json }) => String(at(json, "not_sent", "sentence")))
        yield* ok("PATCH", `${admin}/auth/front-door`, {
          body: { trusted_gateway_header_enabled: true, trusted_gateway_header_secret: "s".repeat(40) }
        })
        assert.include(yield* why, "wants to know who you are")
        yield* ok("PATCH", `${admin}/auth/front-door`, { body: { trusted_gateway_header_enabled: false } })
        yield* Ref.set(address, Option.none())
        assert.include(yield* why, "does not know the address of the gateway")
        assert.lengthOf(running.sent, 0)
      })
    )
  })
)

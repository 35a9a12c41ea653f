import { assert, layer as describeWith } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { HttpApi, type HttpApiGroup } from "effect/http-api"
import { ControlApi, PortalApi } from "../../src/control/api/ControlApi.ts"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as RunningGateway from "../RunningGateway.ts"

class Installation extends Context.Service<
  Installation,
  { readonly gateway: RunningGateway.RunningGateway; readonly token: string; readonly key: string }
>()("test/Installation") {}

const installation = Layer.effect(
  Installation,
  Effect.gen(function* () {
    const token = RunningGateway.newAdminToken()
    const environment = { SVC_PORTAL_BIND_ADDR: "127.0.0.1:0" }
    const gateway = yield* GatewayOnPostgres.start({ adminToken: token, environment, example: true })
    const { raw } = yield* Effect.promise(() => RunningGateway.createKey(gateway, { name: "ada" }))
    return { gateway, token, key: raw }
  })
)

type Headers = Readonly<Record<string, string>>

const ask = (origin: string, method: string, path: string, headers: Headers = {}, body?: object) =>
  Effect.promise(async () => {
    const response = await fetch(origin + path, {
      method,
      redirect: "manual",
      headers: { ...headers, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) })
    })
    const cookie = response.headers.get("set-cookie") ?? ""
    return { status: response.status, text: await response.text(), headers: response.headers, cookie }
  })

const endpointsOf = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
): ReadonlyArray<string> => {
  const found: Array<string> = []
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint: { method, path } }) =>
      void found.push(`${method} ${path.replaceAll(/:\w+/g, "00000000-0000-4000-8000-000000000000")}`)
  })
  return found
}

const session = "/admin-ui/session"
const sameOrigin = { "sec-fetch-site": "same-origin" }

/** Signs in as a page does. */
const signIn = Effect.fnUntraced(function* (origin: string, token: string) {
  const answer = yield* ask(origin, "POST", session, sameOrigin, { token })
  assert.strictEqual(answer.status, 200, answer.text)
  const [name = "", value = ""] = (answer.cookie.split(";", 1)[0] ?? "").split("=")
  const csrf = /"csrf":\{[^}]*"value":"(\w+)"/.exec(answer.text)?.[1] ?? ""
  return { name, value, page: { ...sameOrigin, cookie: `${name}=${value}`, "x-svc-csrf": csrf } }
})

describeWith(installation, { excludeTestServices: true })("The listener for holders of keys", (it) => {
  it.effect("has nothing of the operators' API, whoever asks and however", () =>
    Effect.gen(function* () {
      const { gateway, key, token } = yield* Installation
      const own = new Set(endpointsOf(PortalApi))
      const others = endpointsOf(ControlApi).filter((endpoint) => !own.has(endpoint))
      assert.isAbove(others.length, 100)
      for (const endpoint of [
        ...others,
        "GET /admin-ui/docs",
        "GET /admin-ui/openapi.json",
        "GET /admin-ui/tasks/queues"
      ]) {
        const [method = "", path = ""] = endpoint.split(" ")
        for (const bearer of [token, key]) {
          const { status } = yield* ask(gateway.portal, method, path, { authorization: `Bearer ${bearer}` })
          assert.strictEqual(status, 404, endpoint)
        }
      }
    })
  )

  it.effect("has what the pages of holders ask for, with their cookie", () =>
    Effect.gen(function* () {
      const { gateway, key } = yield* Installation
      const { page } = yield* signIn(gateway.portal, key)
      for (const view of [
        "",
        "/limits",
        "/usage",
        "/models",
        "/requests",
        "/guardrails",
        "/history",
        "/raise-requests"
      ])
        assert.strictEqual((yield* ask(gateway.portal, "GET", `/admin-ui/v1/me${view}`, page)).status, 200, view)
      const asked: ReadonlyArray<readonly [path: string, body: object]> = [
        ["me/test", { protocol: "chat", model: "m" }],
        ["me/raise-requests", { reason: "a demo" }],
        ["guardrails/test", { mode: "pre_call", input: { messages: [] } }]
      ]
      for (const [path, body] of asked) {
        const answer = yield* ask(gateway.portal, "POST", `/admin-ui/v1/${path}`, page, body)
        assert.strictEqual(answer.status, 200, `${path}: ${answer.text}`)
        const { "x-svc-csrf": _, ...withoutHeader } = page
        assert.strictEqual(
          (yield* ask(gateway.portal, "POST", `/admin-ui/v1/${path}`, withoutHeader, body)).status,
          403
        )
      }
    })
  )

  it.effect("leads every page to those of holders", () =>
    Effect.gen(function* () {
      const { gateway } = yield* Installation
      const navigation = { accept: "text/html" }
      for (const path of ["/admin-ui/", "/admin-ui/keys", "/admin-ui/tasks", "/admin-ui/mine"]) {
        const { headers, status } = yield* ask(gateway.portal, "GET", path, navigation)
        assert.deepStrictEqual([status, headers.get("location")], [302, "/admin-ui/my"], path)
      }
      const { headers } = yield* ask(gateway.portal, "GET", "/")
      assert.strictEqual(headers.get("location"), "/admin-ui/")
      for (const path of ["/admin-ui/my", "/admin-ui/my/requests"])
        assert.include([200, 503], (yield* ask(gateway.portal, "GET", path, navigation)).status, path)
    })
  )

  it.effect("signs in holders alone", () =>
    Effect.gen(function* () {
      const { gateway, key, token } = yield* Installation
      const refused = yield* ask(gateway.portal, "POST", session, sameOrigin, { token })
      assert.strictEqual(refused.status, 401)
      assert.include(refused.text, "Operator tokens are not accepted here")
      assert.strictEqual(refused.cookie, "")
      const { name, page } = yield* signIn(gateway.portal, key)
      assert.strictEqual(name, "svc_holder_session")
      const shown = yield* ask(gateway.portal, "GET", session, page)
      assert.include(shown.text, `"name":"ada","scopes":["self"]`)
      assert.strictEqual((yield* ask(gateway.portal, "GET", "/admin-ui/v1/me", page)).status, 200)
      const crossSite = { ...page, "sec-fetch-site": "cross-site" }
      assert.strictEqual((yield* ask(gateway.portal, "GET", "/admin-ui/v1/me", crossSite)).status, 403)
      assert.strictEqual((yield* ask(gateway.portal, "DELETE", session, page)).status, 204)
      assert.strictEqual((yield* ask(gateway.portal, "GET", "/admin-ui/v1/me", page)).status, 401)
    })
  )

  // both listeners are at one host, and browsers send its cookies to every port
  it.effect("gives a session of the other listener no right, and takes it none", () =>
    Effect.gen(function* () {
      const { gateway, key, token } = yield* Installation
      const operator = yield* signIn(gateway.control, token)
      const holder = yield* signIn(gateway.portal, key)
      const both = { ...sameOrigin, cookie: `${operator.page.cookie}; ${holder.page.cookie}` }
      const keys = "/admin-ui/admin/keys"
      assert.strictEqual((yield* ask(gateway.control, "GET", keys, both)).status, 200)
      assert.include((yield* ask(gateway.portal, "GET", session, both)).text, "gateway_key")

      const asHolder = { ...operator.page, cookie: `svc_holder_session=${operator.value}` }
      for (const path of [session, "/admin-ui/v1/me"]) {
        const { status } = yield* ask(gateway.portal, "GET", path, asHolder)
        assert.strictEqual(status, 401, path)
      }
      assert.strictEqual((yield* ask(gateway.portal, "DELETE", session, asHolder)).status, 204)
      assert.strictEqual((yield* ask(gateway.control, "GET", keys, operator.page)).status, 200)

      const asOperator = { ...holder.page, cookie: `svc_session=${holder.value}` }
      assert.strictEqual((yield* ask(gateway.control, "GET", keys, asOperator)).status, 401)
    })
  )

  it.effect("opens its pages by a name that is known", () =>
    Effect.gen(function* () {
      const { gateway } = yield* Installation
      const origin = gateway.portal.replace("127.0.0.1", "localhost")
      assert.include([200, 503], (yield* ask(origin, "GET", "/admin-ui/my", { accept: "text/html" })).status)
    })
  )
})

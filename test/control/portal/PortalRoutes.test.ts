import { assert, layer as describeWith } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import * as ControlApp from "../../../src/control/ControlApp.ts"
import { InstallationOfEnvironment } from "../../../src/control/portal/InstallationFacts.ts"
import { type BuiltPortal, PortalFiles } from "../../../src/control/portal/PortalFiles.ts"
import { GatewayAddress } from "../../../src/process/GatewayAddress.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import { layer } from "../Listener.ts"
import { rawRequest } from "./RawRequest.ts"

const bytes = (text: string) => new TextEncoder().encode(text)

const built: BuiltPortal = {
  page: `<title>portal</title><script type="application/json" id="installation">{}</script><script nonce="__nonce__">1</script>`,
  assets: new Map([
    [
      "a-1.js",
      { contentType: "text/javascript; charset=utf-8", identity: bytes("plain"), gzip: bytes("gz"), br: bytes("br") }
    ],
    ["icon-1.svg", { contentType: "image/svg+xml", identity: bytes("<svg/>") }]
  ])
}

const environment = "</script><!--$& prod"

const listening = (portal: Option.Option<BuiltPortal>) =>
  layer(EmbeddedDatabase.layer, {
    routes: ControlApp.layer.pipe(
      Layer.provide([
        Layer.succeed(PortalFiles, portal),
        Layer.succeed(InstallationOfEnvironment, {
          environment: Option.some(environment),
          version: "1.2.3",
          gatewayOrigin: Option.none(),
          hasTasks: true
        }),
        GatewayAddress.listening({ host: "0.0.0.0", ip: "0.0.0.0", port: 8080 })
      ])
    )
  })

const navigation = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" }
const open = (path: string, headers: Readonly<Record<string, string>> = navigation, method = "GET") =>
  rawRequest(method, path, headers)
const rawFile = (path: string, accepted: string) => rawRequest("GET", path, { "accept-encoding": accepted })

const Facts = Schema.fromJsonString(
  Schema.Struct({
    environment: Schema.NullOr(Schema.String),
    version: Schema.String,
    gateway_url: Schema.NullOr(Schema.String),
    oidc: Schema.Boolean,
    session: Schema.Boolean,
    holders_only: Schema.Boolean,
    tasks: Schema.Boolean
  })
)
const factsOf = (html: string) => Schema.decodeUnknownSync(Facts)(/id="installation">([^<]*)<\/script>/.exec(html)?.[1])

describeWith(listening(Option.some(built)), { excludeTestServices: true })("The portal", (it) => {
  it.effect("is what every navigation gets, with a nonce of its own and under a policy", () =>
    Effect.gen(function* () {
      const nonces = new Set<string>()
      for (const path of [
        "/admin-ui/",
        "/admin-ui/keys?q=1",
        "/admin-ui/tasks",
        "/admin-ui/tasks/board",
        "/admin-ui/x/y"
      ]) {
        const { headers, status, text } = yield* open(path)
        assert.strictEqual(status, 200, path)
        assert.strictEqual(headers["content-type"], "text/html; charset=utf-8")
        assert.strictEqual(headers["cache-control"], "no-store")
        const nonce = /<script nonce="([^"]+)">/.exec(text)?.[1] ?? ""
        nonces.add(nonce)
        const policy = String(headers["content-security-policy"])
        assert.include(policy, `script-src 'self' 'nonce-${nonce}';`)
        assert.include(policy, "default-src 'none'")
        assert.include(policy, "frame-ancestors 'none'")
        assert.notMatch(policy, /unsafe|\*|https?:|data:/)
        assert.strictEqual(headers["x-content-type-options"], "nosniff")
        assert.strictEqual(headers["referrer-policy"], "no-referrer")
        assert.strictEqual(headers["cross-origin-opener-policy"], "same-origin")
      }
      assert.strictEqual(nonces.size, 5)
      assert.strictEqual((yield* open("/admin-ui/keys", navigation, "HEAD")).status, 200)
    })
  )

  it.effect("is nothing else: the API, the documentation and the probes have their paths for themselves", () =>
    Effect.gen(function* () {
      const own = {
        "/admin-ui/docs": 200,
        "/admin-ui/openapi.json": 200,
        "/admin-ui/healthz": 200,
        "/admin-ui/readyz": 200,
        "/admin-ui/metrics": 200,
        "/admin-ui/admin/keys": 401,
        "/admin-ui/v1/me": 401,
        "/admin-ui/find?q=abcd": 401,
        "/admin-ui/live": 401,
        "/admin-ui/session": 401,
        "/admin-ui/upstream-ui/x": 401,
        "/admin-ui/assets/nothing.js": 404
      }
      for (const [path, status] of Object.entries(own)) {
        const answer = yield* open(path)
        assert.strictEqual(answer.status, status, path)
        assert.notInclude(answer.text, "<title>portal</title>", path)
      }
      for (const path of ["/admin-ui/keys", "/admin-ui/nothing"])
        assert.strictEqual((yield* open(path, { accept: "*/*" })).status, 404, path)
      assert.strictEqual((yield* open("/admin-ui/tasks", { accept: "*/*" })).status, 401)
      assert.strictEqual((yield* open("/admin-ui/keys", navigation, "POST")).status, 404)
    })
  )

  it.effect("is where the bare address leads", () =>
    Effect.gen(function* () {
      for (const path of ["/", "/admin-ui"]) {
        const { headers, status } = yield* open(path, { accept: "*/*" })
        assert.deepStrictEqual([status, headers.location], [302, "/admin-ui/"], path)
      }
      assert.strictEqual((yield* open("/admin-ui", {}, "POST")).status, 404)
    })
  )

  it.effect("knows the installation, and no value of it can end the element", () =>
    Effect.gen(function* () {
      const { text } = yield* open("/admin-ui/", { ...navigation, host: "10.0.0.7:8081" })
      assert.notInclude(text, environment)
      assert.deepStrictEqual(factsOf(text), {
        environment,
        version: "1.2.3",
        gateway_url: "http://10.0.0.7:8080",
        oidc: false,
        session: false,
        holders_only: false,
        tasks: true
      })
      assert.isTrue(factsOf((yield* open("/admin-ui/", { cookie: `svc_session=${"a".repeat(43)}` })).text).session)
    })
  )

  it.effect("has files that never change, in the smallest form that the browser takes", () =>
    Effect.gen(function* () {
      const forms = {
        "gzip, deflate, br, zstd": ["br", "br"],
        "gzip;q=0.5, br;q=0": ["gzip", "gz"],
        identity: [undefined, "plain"]
      } as const
      for (const [accepted, [encoding, text]] of Object.entries(forms)) {
        const file = yield* rawFile("/admin-ui/assets/a-1.js", accepted)
        assert.deepStrictEqual(
          [file.status, file.headers["content-encoding"], file.text, file.headers["content-type"]],
          [200, encoding, text, "text/javascript; charset=utf-8"]
        )
        assert.strictEqual(file.headers["cache-control"], "public, max-age=31536000, immutable")
        assert.strictEqual(file.headers["vary"], "accept-encoding")
      }
      assert.strictEqual((yield* rawFile("/admin-ui/assets/icon-1.svg", "br")).headers["content-type"], "image/svg+xml")
    })
  )

  it.effect("has no file but its own, whatever the path says", () =>
    Effect.gen(function* () {
      for (const name of [
        "../index.html",
        "..%2f..%2fpackage.json",
        "%2e%2e/a-1.js",
        "a-1.js/",
        "a-1.js.br",
        "",
        "__proto__"
      ]) {
        const file = yield* rawFile(`/admin-ui/assets/${name}`, "identity")
        assert.strictEqual(file.status, 404, name)
        assert.notInclude(String(file.headers["cache-control"]), "immutable")
      }
    })
  )

  it.effect("opens only by a name that is known, also where the API of tasks is", () =>
    Effect.gen(function* () {
      for (const path of ["/", "/admin-ui/", "/admin-ui/keys", "/admin-ui/tasks", "/admin-ui/assets/a-1.js"]) {
        const answer = yield* open(path, { ...navigation, host: "evil.example", "accept-language": "de" })
        assert.strictEqual(answer.status, 403, path)
        assert.include(answer.text, "unknown_host")
      }
    })
  )
})

describeWith(listening(Option.none()), { excludeTestServices: true })("Without a built portal", (it) => {
  it.effect("a page says how to build it", () =>
    Effect.gen(function* () {
      const { headers, status, text } = yield* open("/admin-ui/keys")
      assert.strictEqual(status, 503)
      assert.include(text, "npm run build:portal")
      assert.match(String(headers["content-security-policy"]), /^default-src 'none'/)
      assert.strictEqual((yield* open("/admin-ui/docs")).status, 200)
    })
  )
})

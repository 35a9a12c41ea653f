import { assert, describe, layer as describeWith } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { HttpServer } from "effect/http"
import { chromium } from "playwright-core"
import { inject } from "vitest"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import { at, call, layer, operatorToken, suite } from "../Listener.ts"

const executable = inject("headlessChromium")

suite("Answers of the control listener", (it) => {
  it.effect("are in no frame, and of no other type than they say, whether there is something or not", () =>
    Effect.gen(function* () {
      for (const [path, authorization] of [
        ...["docs", "openapi.json", "healthz", "readyz", "metrics", "nothing"].map((path) => [path, null] as const),
        ["admin/keys", null] as const,
        ["admin/keys", `Bearer ${operatorToken}`] as const
      ]) {
        const { headers } = yield* call("GET", `/admin-ui/${path}`, { authorization })
        assert.match(headers["content-security-policy"] ?? "", /default-src 'none';.*frame-ancestors 'none'/, path)
        assert.strictEqual(headers["x-content-type-options"], "nosniff", path)
        assert.strictEqual(headers["referrer-policy"], "no-referrer", path)
        assert.strictEqual(headers["cross-origin-opener-policy"], "same-origin", path)
      }
    })
  )
})

suite("The documentation", (it) => {
  it.effect("says what operators' answers look like once", () =>
    Effect.gen(function* () {
      const described = yield* call("GET", "/admin-ui/openapi.json", { authorization: null })
      assert.isDefined(at(described.json, "components", "schemas", "ListedKey"))
      const listed = at(described.json, "paths", "/admin-ui/admin/keys/{id}", "get", "responses", "200", "content")
      assert.deepStrictEqual(at(listed, "application/json", "schema"), { $ref: "#/components/schemas/ListedKey" })
    })
  )
})

const methodOf = (name: string) => (name === "put" ? "PUT" : name === "patch" ? "PATCH" : "POST")

/** What the document has of each operation. */
const decodePaths = Schema.decodeUnknownSync(
  Schema.Struct({
    paths: Schema.Record(
      Schema.String,
      Schema.Record(
        Schema.String,
        Schema.Struct({
          requestBody: Schema.optionalKey(
            Schema.Struct({
              content: Schema.Record(Schema.String, Schema.Struct({ example: Schema.optionalKey(Schema.Json) }))
            })
          )
        })
      )
    )
  })
)

suite("The documentation's examples", (it) => {
  it.effect("are taken as they are", () =>
    Effect.gen(function* () {
      const described = yield* call("GET", "/admin-ui/openapi.json", { authorization: null })
      const examples = Object.entries(decodePaths(described.json).paths).flatMap(([path, operations]) =>
        Object.entries(operations).flatMap(([method, { requestBody }]) => {
          const example = requestBody?.content["application/json"]?.example
          return example === undefined ? [] : [{ method, path, example }]
        })
      )
      assert.isAtLeast(examples.length, 12)
      // These name a token and a hash, which every installation has its own of.
      const own = ["/admin-ui/session", "/admin-ui/admin/model-prices/import"]
      for (const { example, method, path } of examples.filter(({ path }) => !own.includes(path))) {
        const place = path
          .replace("{model}", "claude-*")
          .replace("guardrails/{name}", "guardrails/pii-redact")
          .replace("{route_id}", path.includes("family-a") ? "chat-completions" : "messages")
        const { status, text } = yield* call(methodOf(method), place, { body: example })
        assert.isBelow(status, 300, `${method} ${path}: ${text}`)
      }
    })
  )
})

describe.skipIf(executable === null)("in a browser", () => {
  describeWith(layer(EmbeddedDatabase.layer), { excludeTestServices: true })(
    "The documentation of the control API",
    (it) => {
      it.effect("works under its policy, which lets no other script run", () =>
        Effect.gen(function* () {
          const { port } = new URL(yield* HttpServer.addressFormattedWith(Effect.succeed))
          // tests may run as root, where Chromium has no sandbox
          const browser = yield* Effect.acquireRelease(
            Effect.promise(() => chromium.launch({ executablePath: executable ?? "", args: ["--no-sandbox"] })),
            (browser) => Effect.promise(() => browser.close())
          )
          const page = yield* Effect.promise(() => browser.newPage())
          // Swagger UI resolves the whole document for each operation that is opened: seconds, and many beside other tests.
          page.setDefaultTimeout(110_000)
          const complaints: Array<string> = []
          page.on("console", (message) => void (message.type() === "error" && complaints.push(message.text())))
          page.on("pageerror", (error) => void complaints.push(error.message))
          yield* Effect.promise(() => page.goto(`http://127.0.0.1:${port}/admin-ui/docs`))
          const operation = page.locator(`[id^="operations-projects-"][id$=".list"]`)
          yield* Effect.promise(() => operation.locator(".opblock-summary-control").click())
          yield* Effect.promise(() => page.locator("button.authorize.unlocked").click())
          yield* Effect.promise(() => page.locator("#auth-bearer-value").first().fill(operatorToken))
          yield* Effect.promise(() => page.locator(".auth-btn-wrapper button.authorize").first().click())
          yield* Effect.promise(() => page.locator(".auth-btn-wrapper button.btn-done").first().click())
          yield* Effect.promise(() => operation.locator("button.try-out__btn").click())
          yield* Effect.promise(() => operation.locator("button.execute").click())
          const status = operation.locator(".live-responses-table .response-col_status")
          assert.match((yield* Effect.promise(() => status.last().textContent())) ?? "", /^200/)
          assert.deepStrictEqual(complaints, [])
          const ran = yield* Effect.promise(() =>
            page.evaluate<boolean>(`(() => {
            const script = document.createElement("script")
            script.textContent = "window.injected = true"
            document.body.append(script)
            return window.injected === true
          })()`)
          )
          assert.isFalse(ran)
          assert.lengthOf(complaints, 1)
        })
      )
    }
  )
})

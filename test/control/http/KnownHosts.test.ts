import { request } from "node:http"
import { assert, describe, layer as describeWith } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { chromium } from "playwright-core"
import { inject } from "vitest"
import * as ControlApp from "../../../src/control/ControlApp.ts"
import { ControlHosts } from "../../../src/control/http/KnownHosts.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import { layer, operatorToken } from "../Listener.ts"

// Only the browser with a window has a language, which it tells servers.
const executable = inject("chromium")

const routes = ControlApp.layer.pipe(Layer.provide(Layer.succeed(ControlHosts, ["gateway.example"])))
const listener = layer(EmbeddedDatabase.layer, { routes })
const options = { excludeTestServices: true } as const

const open = ["/admin-ui/healthz", "/admin-ui/readyz", "/admin-ui/metrics", "/admin-ui/docs", "/admin-ui/openapi.json"]

/** A request with these headers and no other, by the name in `host`. */
const asked = (path: string, headers: Readonly<Record<string, string>>) =>
  HttpServer.addressFormattedWith((address) =>
    Effect.callback<{ readonly status: number; readonly code: string | undefined; readonly id: unknown }>((resume) => {
      request(new URL(path, address), { headers, agent: false }, (incoming) => {
        let text = ""
        incoming.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk
        })
        incoming.on("end", () => {
          const code = /"code":"(\w+)"/.exec(incoming.statusCode === 200 ? "" : text)?.[1]
          resume(Effect.succeed({ status: incoming.statusCode ?? 0, code, id: incoming.headers["x-request-id"] }))
        })
      }).end()
    })
  )

const refused = { status: 403, code: "unknown_host" }

describeWith(listener, options)("The names of the control listener", (it) => {
  it.effect("answer a browser without a token by an address, localhost or a configured name, with any port", () =>
    Effect.gen(function* () {
      for (const host of [
        "127.0.0.1:8081",
        "10.1.2.3",
        "[::1]:8081",
        "localhost:1",
        "a.localhost",
        "Gateway.Example:81"
      ]) {
        for (const path of open) {
          assert.strictEqual((yield* asked(path, { host, "accept-language": "de" })).status, 200, `${host} ${path}`)
        }
      }
    })
  )

  it.effect("refuse every other one to a browser, whatever it asks for", () =>
    Effect.gen(function* () {
      for (const host of [
        "evil.example",
        "gateway.example.evil",
        "localhost.evil",
        "127.0.0.1.evil",
        "1.2.3.4.evil:80",
        "["
      ]) {
        for (const path of [...open, "/admin-ui/nothing", "/", "/admin-ui/administration"]) {
          const { id, ...answer } = yield* asked(path, { host, "accept-language": "" })
          assert.deepStrictEqual(answer, refused, `${host} ${path}`)
          assert.isString(id)
        }
      }
      for (const sign of ["origin", "referer", "sec-fetch-site"]) {
        const { id: _, ...answer } = yield* asked("/admin-ui/metrics", { host: "evil.example", [sign]: "same-origin" })
        assert.deepStrictEqual(answer, refused, sign)
      }
      // a header that opens nothing does not count as a token
      const { id: _, ...claimed } = yield* asked("/admin-ui/metrics", {
        ...{ host: "evil.example", "accept-language": "de", authorization: "Bearer x" }
      })
      assert.deepStrictEqual(claimed, refused)
    })
  )

  it.effect("answer monitors by any name, and the operator API to a token by any name", () =>
    Effect.gen(function* () {
      const host = "svc-control.gateway.svc.cluster.local:8081"
      const prometheus = { host, "user-agent": "Prometheus/3.0", accept: "text/plain", "accept-encoding": "gzip" }
      for (const path of open) assert.strictEqual((yield* asked(path, prometheus)).status, 200, path)
      const node = { host, "accept-language": "*", "sec-fetch-mode": "cors", "user-agent": "node" }
      const authorization = `Bearer ${operatorToken}`
      assert.strictEqual((yield* asked("/admin-ui/admin/keys", { ...node, authorization })).status, 200)
      assert.strictEqual((yield* asked("/admin-ui/admin/keys", node)).status, 401)
    })
  )
})

describe.skipIf(executable === null)("in a browser", () => {
  describeWith(listener, options)("A page whose name leads to the control listener", (it) => {
    it.effect("reads nothing there, whatever headers it sets", () =>
      Effect.gen(function* () {
        const address = new URL(yield* HttpServer.addressFormattedWith(Effect.succeed))
        const browser = yield* Effect.acquireRelease(
          Effect.promise(() =>
            chromium.launch({
              executablePath: executable ?? "",
              args: [
                // tests may run as root, where Chromium has no sandbox
                "--no-sandbox",
                "--host-resolver-rules=MAP *.test 127.0.0.1",
                // other browsers let a page of a public address call a private one
                "--disable-features=LocalNetworkAccessChecks"
              ]
            })
          ),
          (browser) => Effect.promise(() => browser.close())
        )
        const statuses = (host: string) =>
          Effect.promise(async () => {
            const page = await browser.newPage()
            const origin = `http://${host}:${address.port}`
            await page.route(`${origin}/page`, (route) => route.fulfill({ contentType: "text/html", body: "" }))
            await page.goto(`${origin}/page`)
            return page.evaluate<unknown>(`(async () => {
              const found = []
              for (const headers of [{}, { "accept-language": "", "user-agent": "curl", "sec-fetch-site": "none" }]) {
                const answer = await fetch("/admin-ui/metrics", { headers, referrerPolicy: "no-referrer" })
                found.push(answer.status)
              }
              return found
            })()`)
          })
        assert.deepStrictEqual(yield* statuses("evil.test"), [403, 403])
        assert.deepStrictEqual(yield* statuses("127.0.0.1"), [200, 200])
      })
    )
  })
})

import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema, Scope } from "effect"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"
import { inject } from "vitest"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { portOf } from "../upstream/SimulatorServer.ts"

const executable = inject("headlessChromium")

/** Whatever a hostile upstream would like to be obeyed, on every answer. */
const hostileHeaders = {
  "service-worker-allowed": "/",
  "access-control-allow-origin": "*",
  "access-control-allow-credentials": "true",
  "access-control-allow-headers": "*",
  "cross-origin-resource-policy": "cross-origin",
  "cross-origin-opener-policy": "unsafe-none",
  "x-frame-options": "ALLOWALL",
  "cache-control": "public, max-age=31536000",
  "clear-site-data": `"cookies", "storage", "cache"`,
  "set-cookie": [
    "svc_upstream_ui_session=evil; Path=/",
    "svc_upstream_ui_session=evil; Path=/admin-ui",
    "=svc_upstream_ui_session=evil; Path=/",
    "plain=1; Path=/"
  ]
}

const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "/ui/sw.js": (response) =>
    response
      .setHeader("content-type", "text/javascript")
      .end(`addEventListener("fetch", (event) => event.respondWith(new Response("<title>taken over</title>", {
        headers: { "content-type": "text/html" } })))`),
  "/ui/events": (response) => {
    response.setHeader("content-type", "text/event-stream").write("data: one\n\n")
    setImmediate(() => response.end("data: two\n\n"))
  },
  "/ui/script-redirect": (response) => response.writeHead(302, { location: "javascript:document.title='ran'" }).end()
}

/**
 * Real attacks in a real browser, by an upstream whose UI is hostile: none of them reaches the control origin. Once the
 * two origins differ by their port alone, and once by their host, too.
 */
describe.skipIf(executable === null).each(["127.0.0.1", "localhost"])("a hostile upstream UI at %s", (uiHost) => {
  const heard: Array<IncomingMessage> = []
  const upstream = createServer((request, response) => {
    heard.push(request)
    for (const [name, value] of Object.entries(hostileHeaders)) response.setHeader(name, value)
    request.resume().on("end", () => {
      const answer = answers[request.url?.split("?", 1)[0] ?? ""]
      if (answer !== undefined) answer(response)
      else response.setHeader("content-type", "text/html").end("<!doctype html><title>hostile</title><body>")
    })
  })
  const scope = Scope.makeUnsafe()
  let gateway: RunningGateway.RunningGateway
  let ui: string
  let browser: Browser
  let context: BrowserContext
  let page: Page
  const adminToken = RunningGateway.newAdminToken()

  beforeAll(async () => {
    await new Promise<void>((listening) => upstream.listen(0, "127.0.0.1", listening))
    gateway = await GatewayOnPostgres.start({
      adminToken,
      environment: {
        UPSTREAM_BASE_URL: `http://127.0.0.1:${portOf(upstream.address())}`,
        UPSTREAM_SERVICE_KEY: "upstream-secret",
        GATEWAY_UPSTREAM_UI_BIND_ADDR: "127.0.0.1:0"
      }
    }).pipe(Scope.provide(scope), Effect.runPromise)
    ui = gateway.ui.replace("127.0.0.1", uiHost)
    // tests may run as root, where Chromium has no sandbox
    browser = await chromium.launch({ executablePath: executable ?? "", args: ["--no-sandbox"] })
    context = await browser.newContext()
    page = await context.newPage()
    await open(page)
  }, 90_000)

  afterAll(async () => {
    await browser.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    upstream.closeAllConnections()
    await new Promise((closed) => upstream.close(closed))
  })

  /** As an operator does it: from a page of the control origin, by the link that the control API gives. */
  const open = async (page: Page) => {
    const { url } = Link(await gateway.operate("POST", "/upstream-ui/session"))
    await page.goto(`${gateway.control}/admin-ui/openapi.json`)
    await page.goto(url.replace(gateway.ui, ui), { referer: `${gateway.control}/` })
    await page.waitForURL(`${ui}/ui/`)
  }

  /** Runs in the hostile page; what it throws is a word of the answer. */
  const attack = (script: string) =>
    page.evaluate<unknown>(
      `(async () => { try { return await (async () => { ${script} })() } catch (error) { return "threw " + error.name } })()`
    )

  const operatorFetch = (page: Page) =>
    page.evaluate<unknown>(
      `fetch("/admin-ui/admin/keys", { headers: { authorization: "Bearer ${adminToken}" } }).then((response) => response.json())`
    )

  it("is shown, and the URL has no code any more, also not for the upstream", async () => {
    assert.strictEqual(page.url(), `${ui}/ui/`)
    assert.strictEqual(await page.title(), "hostile")
    assert.isTrue(heard.some(({ url }) => url === "/ui/"))
    assert.isFalse(heard.some(({ rawHeaders, url }) => /code=/.test([url, ...rawHeaders].join("\n"))))
  })

  it("installs no service worker, wherever its script lies", async () => {
    for (const worker of ["/ui/sw.js", `${gateway.control}/admin-ui/upstream-ui/sw.js`]) {
      for (const options of [`{ scope: "/" }`, `{ scope: "/admin-ui/" }`, "{}", `{ type: "module" }`]) {
        const script = `await navigator.serviceWorker.register("${worker}", ${options}); return "installed"`
        assert.match(String(await attack(script)), /^threw /, `${worker} ${options}`)
      }
    }
    assert.strictEqual(await attack(`return (await navigator.serviceWorker.getRegistrations()).length`), 0)
    assert.strictEqual(context.serviceWorkers().length, 0)
    const portal = await context.newPage()
    await portal.goto(`${gateway.control}/admin-ui/`)
    assert.match(await portal.title(), /svc-runtime/)
    // a later call with the operator token is the control listener's, as before
    assert.isArray(await operatorFetch(portal))
    await portal.close()
  })

  it("sees the operator's session neither in scripts nor at the upstream, and cannot change it", async () => {
    assert.notInclude(String(await attack(`return document.cookie`)), "svc_upstream_ui_session")
    await attack(`
      document.cookie = "svc_upstream_ui_session=evil; path=/"
      document.cookie = "svc_upstream_ui_session=; path=/; max-age=0"
      await fetch("/ui/again")`)
    assert.strictEqual(await attack(`return (await fetch("/ui/again")).status`), 200)
    const [own] = (await context.cookies(ui)).filter(({ name }) => name === "svc_upstream_ui_session")
    assert.match(own?.value ?? "", /^[\w-]{43}$/)
    assert.deepInclude(own, { httpOnly: true, sameSite: "Strict", path: "/" })
    const all = heard.map(({ rawHeaders }) => rawHeaders.join("\n")).join("\n")
    assert.notInclude(all, own?.value ?? "")
    // its own cookies come back to it
    assert.isTrue(heard.some(({ headers }) => headers.cookie?.includes("plain=1")))
  })

  it("reads nothing of the control origin, and changes nothing there with the browser's cookies", async () => {
    for (const path of [
      "/admin-ui/admin/keys",
      "/admin-ui/metrics",
      "/admin-ui/openapi.json",
      "/admin-ui/upstream-ui/"
    ]) {
      for (const credentials of ["omit", "include"]) {
        const script = `return (await fetch("${gateway.control}${path}", { credentials: "${credentials}" })).status`
        assert.match(String(await attack(script)), /^threw /, path)
      }
    }
    const before = await gateway.operate("GET", "/operator-tokens")
    await attack(
      `await fetch("${gateway.control}/admin-ui/admin/operator-token/rotate", { method: "POST", mode: "no-cors", credentials: "include" })`
    )
    await attack(`
      const target = Object.assign(document.createElement("iframe"), { name: "target" })
      const form = Object.assign(document.createElement("form"),
        { method: "post", action: "${gateway.control}/admin-ui/admin/operator-token/rotate", target: "target" })
      document.body.append(target, form)
      form.submit()
      await new Promise((loaded) => target.addEventListener("load", loaded))`)
    assert.deepStrictEqual(await gateway.operate("GET", "/operator-tokens"), before)
    // the session's cookie is of this host, also on the control listener's port, where it opens nothing
    const status = await page.request.get(`${gateway.control.replace("127.0.0.1", uiHost)}/admin-ui/upstream-ui/`)
    assert.strictEqual(status.status(), 401)
  })

  it("frames no page of the control origin", async () => {
    for (const path of ["/admin-ui/docs", "/admin-ui/openapi.json", "/admin-ui/upstream-ui/"]) {
      const framed = await attack(`
        const frame = Object.assign(document.createElement("iframe"), { src: "${gateway.control}${path}" })
        document.body.append(frame)
        await new Promise((loaded) => frame.addEventListener("load", loaded))
        return frame.contentDocument === null`)
      assert.isTrue(framed, path)
    }
    const shown = page.frames().filter((frame) => frame.url().startsWith(gateway.control))
    assert.deepStrictEqual(
      shown.map((frame) => frame.url()),
      []
    )
  })

  it("holds neither the page that opened it nor one that it opens", async () => {
    const portal = await context.newPage()
    await portal.goto(`${gateway.control}/admin-ui/`)
    const [opened] = await Promise.all([
      context.waitForEvent("page"),
      portal.evaluate(`void window.open(${JSON.stringify(`${ui}/ui/`)})`)
    ])
    await opened.waitForURL(`${ui}/ui/`)
    assert.isNull(await opened.evaluate("window.opener"))
    const [victim] = await Promise.all([
      context.waitForEvent("page"),
      opened.evaluate(`void (window.held = window.open("${gateway.control}/admin-ui/"))`)
    ])
    await victim.waitForLoadState()
    assert.isTrue(await opened.evaluate("window.held.closed"))
    assert.match(await victim.title(), /svc-runtime/)
    for (const one of [portal, opened, victim]) await one.close()
  })

  it("runs no script by a redirect", async () => {
    const other = await context.newPage()
    await other.goto(`${ui}/ui/script-redirect`).catch(() => {})
    assert.notStrictEqual(await other.title(), "ran")
    await other.close()
  })

  it("leaves nothing in the browser's cache that shows after the session's end, or on the control origin", async () => {
    assert.strictEqual(await attack(`return (await fetch("/ui/kept", { cache: "force-cache" })).status`), 200)
    assert.strictEqual(heard.filter(({ url }) => url === "/ui/kept").length, 1)
    assert.strictEqual(await attack(`return (await fetch("/ui/kept", { cache: "force-cache" })).status`), 200)
    assert.strictEqual(heard.filter(({ url }) => url === "/ui/kept").length, 2)
  })

  it("still works as a UI does: events stream, and its own pages change things", async () => {
    const streamed = await attack(`
      const source = new EventSource("/ui/events")
      const seen = []
      return await new Promise((done) => {
        source.onmessage = ({ data }) => { if (seen.push(data) === 2) { source.close(); done(seen.join()) } }
      })`)
    assert.strictEqual(streamed, "one,two")
    assert.strictEqual(
      await attack(`return (await fetch("/key/generate", { method: "POST", body: "{}" })).status`),
      200
    )
    assert.strictEqual(heard.at(-1)?.headers.authorization, "Bearer upstream-secret")
  })

  it("never hears an operator token, and loses its session with it", async () => {
    assert.notInclude(heard.map(({ rawHeaders, url }) => [url, ...rawHeaders].join("\n")).join("\n"), adminToken)
    await gateway.operate("POST", "/operator-token/rotate")
    assert.strictEqual(await attack(`return (await fetch("/ui/again")).status`), 401)
  })
})

const Link = Schema.decodeUnknownSync(Schema.Struct({ url: Schema.String }))

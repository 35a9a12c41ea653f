import { createServer, type Server } from "node:http"
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { createKey } from "../RunningGateway.ts"
import { portOf } from "../upstream/SimulatorServer.ts"
import { describePortal } from "./PortalBrowser.ts"

const markup = `<img src=x onerror="window.ran=true"><script>window.ran=true</script>`
const rightToLeft = "\u202Egpj.exe\u202C"

const ran = (page: Page) => page.evaluate<boolean>("window.ran === true")

describePortal("An attacker", (portal) => {
  let evil: Server | undefined
  let evilOrigin = ""

  beforeAll(async () => {
    const server = createServer((request, response) => {
      response.setHeader("content-type", "text/html")
      const target = new URL(request.url ?? "/", "http://evil").searchParams.get("frame")
      response.end(`<!doctype html><title>evil</title>${target === null ? "" : `<iframe src="${target}"></iframe>`}`)
    })
    evil = server
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
    // the same host on another port: browsers send it the cookies of this one, too
    evilOrigin = `http://127.0.0.1:${portOf(server.address())}`
  })
  afterAll(() => void evil?.close())

  it("can frame no page", async () => {
    const { page, problems } = await portal.open("/")
    problems.expect(/frame-ancestors|net::ERR_BLOCKED_BY_RESPONSE|^404 GET \/admin-ui\/session\/link/)
    for (const path of ["/admin-ui/", "/admin-ui/keys", "/admin-ui/docs", "/admin-ui/session/link?code=x"]) {
      await page.goto(`${evilOrigin}/?frame=${encodeURIComponent(portal.gateway.control + path)}`)
      await page.waitForLoadState("load")
      const framed = page.frames()[1]
      assert.notInclude((await framed?.content().catch(() => "")) ?? "", "svc-runtime", path)
    }
  })

  it("can do nothing with the cookie from a page of another origin", async () => {
    const { page, problems } = await portal.open("/")
    problems.expect(/CORS|ERR_FAILED|^40[13] |Access-Control|blocked by|BLOCKED_BY_RESPONSE/)
    await page.goto(`${evilOrigin}/`)
    const control = portal.gateway.control
    const outcomes = await page.evaluate<ReadonlyArray<string>>(`(async () => {
      const ask = (path, options) => fetch("${control}" + path, { credentials: "include", ...options })
        .then(async (response) => response.type + " " + response.status, () => "no answer")
      return [
        await ask("/admin-ui/admin/keys", {}),
        await ask("/admin-ui/session", {}),
        await ask("/admin-ui/admin/projects", { method: "POST", mode: "no-cors", body: '{"name":"evil"}' }),
        await ask("/admin-ui/session", { method: "DELETE" })
      ]
    })()`)
    assert.deepStrictEqual(outcomes, ["no answer", "no answer", "no answer", "no answer"])
    const projects = JSON.stringify(await portal.gateway.operate("GET", "/projects"))
    assert.notInclude(projects, "evil")
    await page.goto(`${control}/admin-ui/`)
    await page.waitForSelector("main#page")
  })

  it("finds the token in no storage, address, page or log", async () => {
    const { page } = await portal.open("/keys", { token: null })
    const addresses: Array<string> = []
    page.on("request", (request) => void addresses.push(request.url(), JSON.stringify(request.headers())))
    await page.getByLabel("Operator token or gateway key").fill(portal.adminToken)
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.waitForSelector("main#page")
    await page.reload()
    await page.waitForSelector("main#page")
    const kept = await page.evaluate<string>(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, history.state])"
    )
    for (const text of [kept, page.url(), await page.content(), ...addresses, portal.gateway.output()])
      assert.notInclude(text, portal.adminToken)
    assert.notMatch(kept, /svc_session/)
  })

  it("runs nothing by a name that is stored", async () => {
    const name = `${markup} ${rightToLeft}`.slice(0, 120)
    await portal.gateway.operate("POST", "/projects", { name })
    await portal.gateway.operate("POST", "/keys", {
      owner_type: "individual",
      name,
      policy: { unpriced_models: "flat" }
    })
    const { page, problems } = await portal.open("/keys")
    problems.expect(/^400 GET \/admin-ui\/find/)
    await page.getByText("<img src=x onerror=").first().waitFor()
    assert.isFalse(await ran(page))
    await page.keyboard.press("Control+k")
    await page.keyboard.type("<script>window.ran=true</script>")
    await page
      .getByText(/No such id|characters|Type the name/)
      .first()
      .waitFor()
    assert.isFalse(await ran(page))
  })

  it("turns no text around: what would do it is shown instead", async () => {
    const name = `invoice ${rightToLeft}`
    const project = Object(await portal.gateway.operate("POST", "/projects", { name }))
    const { id, raw } = await createKey(portal.gateway, {
      name,
      tags: [rightToLeft],
      owner_type: "project",
      project_id: project.id
    })
    await portal.gateway.operate("POST", "/policy-layers", { kind: "team", scope_id: name, policy: {} })
    const sent = await fetch(`${portal.gateway.proxy}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${raw}`, "content-type": "application/json" },
      body: JSON.stringify({ model: name, messages: [] })
    })
    await sent.arrayBuffer()
    const { page, problems } = await portal.open("/projects")
    // the drawer of `open` asks for a project of this id
    problems.expect(/^422 GET \/admin-ui\/admin\/usage/)
    await page.getByText("invoice U+202Egpj.exeU+202C").first().waitFor()
    for (const path of [
      "/keys",
      `/keys/${id}`,
      "/projects",
      `/projects/${project.id}`,
      "/requests?range=1h",
      "/usage",
      `/usage?range=1h&open=${encodeURIComponent(name)}`,
      "/policies",
      "/audit"
    ]) {
      await page.goto(`${portal.gateway.control}/admin-ui${path}`)
      await page.locator("main").getByText("U+202Egpj.exe").first().waitFor()
      const hints = `Array.from(document.querySelectorAll("[title]"), ({ title }) => title).join(" ")`
      const shown = [await page.locator("main").innerText(), await page.title(), await page.evaluate<string>(hints)]
      assert.notMatch(shown.join(" "), /[\u202A-\u202E]/, path)
    }
  })

  it("runs nothing in the page, because the policy forbids it", async () => {
    const { page, problems } = await portal.open("/settings")
    problems.expect(/Content Security Policy|^csp /)
    await page.evaluate(`(() => {
      const script = document.createElement("script")
      script.textContent = "window.ran = true"
      document.body.append(script)
      const image = document.createElement("img")
      image.setAttribute("onerror", "window.ran = true")
      image.src = "data:,"
      document.body.append(image)
    })()`)
    assert.isFalse(await ran(page))
    const outside = await page.evaluate<string>(`fetch("${evilOrigin}/").then(() => "reached", () => "blocked")`)
    assert.strictEqual(outside, "blocked")
  })
})

import { assert, it } from "@effect/vitest"
import * as RunningGateway from "../../RunningGateway.ts"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { holdAnswers } from "../HeldAnswers.ts"
import { describePortal, type Portal } from "../PortalBrowser.ts"

const hostile = `<img src=x onerror="document.title='owned'"> \u202eevil`
const until = new Date(Date.now() + 3_600_000).toISOString()

const keyOf = (portal: Portal, settings: object = {}) =>
  RunningGateway.createKey(portal.gateway, {
    name: "ada, laptop",
    owner_email: "ada@example.org",
    policy: { daily_budget_usd: 5, rpm_limit: 1_000, max_requests_per_day: 3 },
    ...settings
  })

const send = (portal: Portal, key: string, model = "any") =>
  fetch(`${portal.gateway.proxy}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, max_tokens: 5, messages: [{ role: "user", content: "hello" }] })
  })

const pages = ["/my", "/my/use", "/my/models", "/my/requests", "/my/guardrails", "/my/key"]

describePortal("The pages of a holder", (portal) => {
  it("say what is left, show a request as it arrives, and why one was refused", async () => {
    const key = await keyOf(portal)
    const { page } = await portal.open("/my", { token: key.raw })
    await page.getByText(/You may spend \$5\.00 more today/).waitFor()
    await page.getByRole("link", { name: "Use it" }).click()
    await page.getByText("Codex CLI").click()
    await page.getByText('wire_api = "responses"').waitFor()
    assert.match(page.url(), /tool=codex/)
    await page.getByRole("button", { name: "Only ask, send nothing" }).click()
    await page.getByText("It would get through").waitFor()
    await page.getByText("Claude Code").click()
    await page.getByText("It would get through").waitFor({ state: "hidden" })
    await page.getByText("Codex CLI").click()
    await page.getByText("It would get through").waitFor()
    for (const expected of [200, 200, 200, 429]) assert.strictEqual((await send(portal, key.raw)).status, expected)
    await page.getByText("It works").first().waitFor()
    await page.getByRole("button", { name: "Test", exact: true }).click()
    await page.getByText("It would be refused").waitFor()

    await page.getByRole("link", { name: "Requests" }).click()
    await page.getByRole("row").filter({ hasText: "429" }).click()
    await page
      .getByRole("dialog")
      .getByText(/^This key's requests of this day \(\d+\) were used up\.$/)
      .waitFor()
    await page.getByRole("dialog").getByRole("button", { name: "Ask for a raise" }).click()
    assert.strictEqual(
      await page.getByRole("combobox", { name: "Which limit is too low?" }).inputValue(),
      "Requests today"
    )
  })

  it("write no model into the settings before they know the key's", async () => {
    const key = await keyOf(portal, { policy: { allowed_models: ["small"] } })
    const { page } = await portal.open("/my", { token: key.raw })
    const answer = await holdAnswers(page, /\/v1\/me\/models/)
    await page.getByRole("link", { name: "Use it" }).click()
    await page.getByRole("heading", { name: "Settings", level: 2 }).waitFor()
    assert.isFalse(await page.getByText('"model"').isVisible())
    assert.strictEqual(await page.getByRole("button", { name: "Test", exact: true }).count(), 0)
    answer()
    await page.getByText('"model":"small"').waitFor()
    await page.getByRole("button", { name: "Test", exact: true }).waitFor()
  })

  it("send a test, and say what came of it", async () => {
    const key = await keyOf(portal)
    const { answer, axe, page } = await portal.open("/my/use?model=any", {
      token: key.raw,
      ownSession: true,
      width: 360
    })
    await page.getByText(/Sends a short request with your key to any, which may answer with one token\./).waitFor()
    await page.getByRole("button", { name: "Test", exact: true }).click()
    await page.getByText("The model answered").waitFor()
    await page.getByText(/\d+ tokens? sent, 1 token answered, .*\d m?s\./).waitFor()
    // the test is recorded like any request of the key
    await page.getByText("It works", { exact: true }).waitFor()
    await page.getByText("Codex CLI").click()
    await page.getByText("The model answered").waitFor({ state: "hidden" })
    await page.getByText(/may answer with 16 tokens/).waitFor()
    await page.getByRole("button", { name: "Test", exact: true }).click()
    await page.getByText("The model answered").waitFor()

    await page.goto(`${portal.gateway.control}/admin-ui/my/use?model=simulate-404`)
    await page.getByRole("button", { name: "Test", exact: true }).click()
    await page.getByText("The model provider refused it").waitFor()
    await page.getByText("Your key works. Check the name of the model.").waitFor()
    await page.getByText("Its words: Simulated 404.").waitFor()
    assert.deepStrictEqual(await axe(), [])

    const refused = {
      ...{
        allowed: true,
        error_code: null,
        sentence: "It would.",
        what_to_do: "Run it.",
        meter: null,
        resets_at: null
      },
      ...{ guardrails: [], not_sent: null },
      sent: {
        ...{ outcome: "refused_by_provider", status_code: 400, error_code: null, provider_message: hostile },
        ...{ sentence: "It refused.", what_to_do: "Wait.", input_tokens: null, output_tokens: null, cost_usd: null },
        ...{ latency_ms: 5, request_id: "r" }
      }
    }
    const back = await answer("/v1/me/test", { body: refused })
    await page.getByRole("button", { name: "Test", exact: true }).click()
    await page.getByText("It refused.").waitFor()
    assert.include(await page.locator("main").innerText(), "<img src=x")
    assert.notInclude(await page.title(), "owned")
    await back()
    const unsent = { ...refused, sent: null, not_sent: { sentence: "Nothing was sent.", what_to_do: "Sign in again." } }
    await answer("/v1/me/test", { body: unsent })
    await page.getByRole("button", { name: "Test", exact: true }).click()
    await page.getByText("Nothing was sent. Sign in again.").waitFor()
  })

  it("send a test again after the key got a new secret", async () => {
    const key = await keyOf(portal, { holder_rotation: true })
    const { page } = await portal.open("/my/key", { token: key.raw, ownSession: true })
    await page.getByRole("button", { name: "Get a new secret" }).click()
    await page.getByLabel(/Not at all/).check()
    await page.getByLabel(/Type “rk_live_/).fill(key.raw.slice(0, 16))
    await page.getByRole("dialog").getByRole("button", { name: "Get a new secret" }).click()
    await page.getByLabel("I stored it").check()
    await page.getByRole("button", { name: "Done" }).click()
    await page.getByRole("link", { name: "Use it" }).click()
    await page.getByRole("button", { name: "Test", exact: true }).click()
    await page.getByText("The model answered").waitFor()
  })

  it("ask for a raise, and show the answer", async () => {
    const key = await keyOf(portal)
    const { page } = await portal.open("/my", { token: key.raw, width: 360 })
    await page.getByRole("button", { name: "Ask for a raise" }).click()
    await page.getByLabel("What do you need it for?").fill(hostile)
    await page.getByRole("button", { name: "Send the request" }).click()
    await page.getByText("waits for an answer").waitFor()
    const [request] = [await portal.gateway.operate("GET", `/limits/raise-requests?key_id=${key.id}`)].flat()
    assert(typeof request === "object" && request !== null && "id" in request)
    await portal.gateway.operate("POST", `/limits/raise-requests/${request.id}/grant`, {
      daily_budget_usd: 25,
      until,
      reason: "secret of operators",
      answer: "until tonight"
    })
    await page.reload()
    await page.getByText("until tonight").waitFor()
    await page.getByText(/You have \$25\.00 a day/).waitFor()
    await page.getByText(/You may spend \$25\.00 more today/).waitFor()
    assert.include(await page.locator("main").innerText(), "<img src=x")
    assert.notInclude(await page.title(), "owned")
    assert.notInclude(await page.locator("body").innerText(), "secret of operators")
  })

  it("say what happened to the key, and not that the session has ended", async () => {
    const key = await keyOf(portal)
    const { axe, page, problems } = await portal.open("/my/models", { token: key.raw, ownSession: true })
    problems.expect(/^401 GET /)
    await portal.gateway.operate("POST", `/keys/${key.id}/disable`)
    await page.keyboard.press("r")
    await page.getByText("The gateway key is disabled; an operator can enable it.").waitFor()
    assert.strictEqual(await page.getByText("The session has ended").count(), 0)
    assert.deepStrictEqual(await axe(), [])
    await page.reload()
    await page.getByText("The gateway key is disabled; an operator can enable it.").waitFor()
    await portal.gateway.operate("POST", `/keys/${key.id}/enable`)
    // a session without a usable key is remembered as unknown for a second
    await eventuallyTrue(async () => {
      await page.reload()
      await page.getByRole("heading", { name: /^(Models|Sign in)$/, level: 1 }).waitFor()
      return page.getByRole("heading", { name: "Models", level: 1 }).isVisible()
    })
  })

  it("ask for a model that the key may not use", async () => {
    const key = await keyOf(portal, { policy: { allowed_models: ["small"] } })
    assert.strictEqual((await send(portal, key.raw, "large")).status, 403)
    const { page } = await portal.open("/my/requests", { token: key.raw, width: 360 })
    await page.getByText("403").click()
    await page.getByRole("dialog").getByRole("button", { name: "Ask for this model" }).click()
    const dialog = page.getByRole("dialog", { name: "Ask for this model" })
    assert.strictEqual(await dialog.getByLabel("Which model do you need?").inputValue(), "large")
    assert.strictEqual(await dialog.getByLabel("Which limit is too low?").count(), 0)
    await dialog.getByLabel("What do you need it for?").fill("a long text")
    await dialog.getByRole("button", { name: "Send the request" }).click()
    await page.getByText("Your request was sent.").waitFor()
    const [request] = [await portal.gateway.operate("GET", `/limits/raise-requests?key_id=${key.id}`)].flat()
    await portal.gateway.operate("POST", `/limits/raise-requests/${Object(request).id}/grant-model`, {})
    await page.goto(`${portal.gateway.control}/admin-ui/my/models`)
    await page.getByRole("button", { name: "Ask for a model" }).waitFor()
    await page.goto(`${portal.gateway.control}/admin-ui/my`)
    await page.getByText("large was allowed.").waitFor()
  })

  it("do not repeat a list of requests that is refused", async () => {
    const key = await keyOf(portal)
    const { answer, page } = await portal.open("/my/key", { token: key.raw })
    // a range that moves on would be another list: the minute has just begun
    await page.clock.install({ time: Math.floor(Date.now() / 60_000) * 60_000 })
    await answer(/\/v1\/me\/requests\?.*limit=100/, { status: 403, message: "The list is not for this key." })
    let reads = 0
    page.on("request", (request) => {
      if (/\/v1\/me\/requests\?.*limit=100/.test(request.url())) reads += 1
    })
    await page.goto(`${portal.gateway.control}/admin-ui/my/requests`)
    await page.getByText("The list is not for this key.").waitFor()
    const before = reads
    await page.clock.fastForward("00:30")
    await page.getByRole("link", { name: "Use it" }).click()
    await page.getByText("Codex CLI").waitFor()
    assert.strictEqual(reads, before)
  })

  // a key without a name is called by its prefix, which a new secret changes
  it.each([["ada, laptop"], [undefined]])(
    "give a key a new secret that is shown once, and stay signed in: %s",
    async (name) => {
      const key = await keyOf(portal, { name, holder_rotation: true })
      const { page } = await portal.open("/my/key", { token: key.raw, ownSession: true })
      await page.getByRole("button", { name: "Get a new secret" }).click()
      await page.getByLabel(/Not at all/).check()
      await page.getByLabel(/Type “rk_live_/).fill(key.raw.slice(0, 16))
      await page.getByRole("dialog").getByRole("button", { name: "Get a new secret" }).click()
      const secret = await page.getByRole("region", { name: "Secret", exact: true }).innerText()
      assert.match(secret, /^rk_live_[0-9a-f]{72}$/)
      await page.getByLabel("I stored it").check()
      await page.getByRole("button", { name: "Done" }).click()
      await page.getByText("Its holder gave it a new secret").waitFor()
      assert.notInclude(await page.content(), secret)
      const kept = await page.evaluate<string>(
        "JSON.stringify([localStorage, sessionStorage]) + document.cookie + location"
      )
      assert.notInclude(kept, secret)
      assert.strictEqual((await send(portal, secret)).status, 200)
      assert.strictEqual((await send(portal, key.raw)).status, 401)
    }
  )

  it("show nothing of the holder who was at the browser before", async () => {
    const [first, second] = [await keyOf(portal, { name: "first holder" }), await keyOf(portal, { name: "second" })]
    const { page } = await portal.open("/my/key", { token: first.raw, ownSession: true })
    await page.getByText("first holder").first().waitFor()
    await page.getByRole("button", { name: /^Signed in as/ }).click()
    await page.getByRole("menuitem", { name: "Sign out" }).click()
    await page.getByLabel("Operator token or gateway key").fill(second.raw)
    const answer = await holdAnswers(page, /\/v1\/me/)
    const asked = page.waitForRequest(/\/v1\/me/)
    await page.getByRole("button", { name: "Sign in" }).click()
    await asked
    await page.getByRole("heading", { level: 1 }).waitFor()
    assert.notInclude(await page.locator("body").innerText(), "first holder")
    answer()
    await page.getByText("second").first().waitFor()
  })

  it("stop the old secret before its grace is over", async () => {
    const key = await keyOf(portal, { holder_rotation: true })
    const { page } = await portal.open("/my/key", { token: key.raw, ownSession: true })
    await page.getByRole("button", { name: "Get a new secret" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Get a new secret" }).click()
    await page.getByLabel("I stored it").check()
    await page.getByRole("button", { name: "Done" }).click()
    assert.strictEqual((await send(portal, key.raw)).status, 200)
    await page.getByRole("link", { name: "Home" }).first().click()
    // The page of the key, which has the same button, goes away with a dialog that was opened from it.
    await page.getByRole("heading", { level: 1, name: "Home" }).waitFor()
    await page.getByRole("button", { name: "Stop it now" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Stop it", exact: true }).click()
    await page.getByText("The old secret does not work any more.").waitFor()
    await page.getByRole("button", { name: "Stop it now" }).waitFor({ state: "hidden" })
    await eventuallyTrue(async () => (await send(portal, key.raw)).status === 401)
  })

  it("show nothing of operators or of other keys, and lead back from their pages", async () => {
    const secret = await keyOf(portal, { name: "secret-name" })
    await send(portal, secret.raw, "secret-model")
    const key = await keyOf(portal)
    const { page } = await portal.open("/my", { token: key.raw })
    const asked: Array<string> = []
    page.on("request", (request) => asked.push(new URL(request.url()).pathname))
    for (const path of ["/keys", "/usage", `/keys/${secret.id}`, "/audit", ...pages]) {
      await page.goto(`${portal.gateway.control}/admin-ui${path}`)
      await page.getByRole("heading", { level: 1 }).waitFor()
      assert.match(page.url(), /\/admin-ui\/my/, path)
      assert.notMatch(await page.locator("body").innerText(), /secret-|scope|layer|upstream/i)
    }
    assert.deepStrictEqual(
      asked.filter((path) => /^\/admin-ui\/(admin|live|find|tasks)/.test(path)),
      []
    )
  })

  it("are walked by keys, which are told, and have no palette", async () => {
    const key = await keyOf(portal)
    const { page } = await portal.open("/my", { token: key.raw })
    await page.getByText(/You may spend/).waitFor()
    await page.keyboard.press("?")
    const keys = page.getByRole("dialog", { name: "Keys" })
    await keys.getByText("read everything on the page again").waitFor()
    assert.strictEqual(await keys.getByText("find an id").count(), 0)
    await page.keyboard.press("Escape")
    await keys.waitFor({ state: "hidden" })
    await page.keyboard.press("g")
    await page.keyboard.press("m")
    await page.getByRole("heading", { name: "Models", level: 1 }).waitFor()
    await page.goto(`${portal.gateway.control}/admin-ui/my/nothing`)
    await page.getByText("The address may be of another version.").waitFor()
    assert.notInclude(await page.locator("main").innerText(), "⌘K")
    await page.getByRole("link", { name: "Go to the home page" }).click()
    await page.waitForURL(/\/admin-ui\/my$/)
  })

  it("say what went wrong, each panel for itself", async () => {
    const key = await keyOf(portal)
    const { answer, page } = await portal.open("/my", { token: key.raw })
    await answer("/v1/me/usage", { status: 500 })
    await page.reload()
    await page.getByRole("alert").filter({ hasText: "Something broke." }).waitFor()
    await page.getByText(/You may spend/).waitFor()
    await page.getByText("The gateway works", { exact: true }).waitFor()
    await answer("/v1/me/requests", { status: 500 })
    await page.reload()
    await page.getByText("How your last request went cannot be read at the moment.").waitFor()
    await page.getByText("The gateway works, with difficulties").waitFor()
  })
})

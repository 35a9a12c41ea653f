import { assert, it } from "@effect/vitest"
import { createKey } from "../../RunningGateway.ts"
import { eventuallyTrue } from "../EventuallyTrue.ts"
import { describePortal } from "../PortalBrowser.ts"

const gibberish = /rk_live_[\w-]{20,}/

describePortal("The first minute", (portal) => {
  it("leads from a key over a request that is seen to arrive to a budget, and forgets the secret", async () => {
    const { axe, page } = await portal.open("/")
    await page.getByText("Four steps, and it is in use.").waitFor()
    assert.deepStrictEqual(await axe(), [])
    await page.getByLabel("Name").fill("ada's laptop")
    await page.keyboard.press("Enter")
    await eventuallyTrue(async () => gibberish.test(await page.locator("main").innerText()))
    const [secret = ""] = gibberish.exec(await page.locator("main").innerText()) ?? []
    await page.getByText("Waiting for the first request").waitFor()
    const flat = page.getByText(/No model that this key may call has a price yet, so each request is charged one flat/)
    await flat.waitFor()
    assert.strictEqual(
      await page.getByRole("link", { name: "Import the price book" }).getAttribute("href"),
      "/admin-ui/models?do=import"
    )
    assert.deepStrictEqual(await axe(), [])
    const price = { input_usd_per_million: 1, output_usd_per_million: 1 }
    await portal.gateway.operate("PUT", "/model-prices/priced", price)
    await flat.waitFor({ state: "hidden" })
    await page.getByText('"model":"priced"').first().waitFor()
    const response = await fetch(`${portal.gateway.proxy}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: "Hello" }] })
    })
    assert.strictEqual(response.status, 200)
    await page.getByText("It arrived").waitFor()
    // it stays until the person has it, also where no other page is opened
    await page.getByRole("button", { name: "Leave these steps" }).click()
    await page.getByText("Store the new secret first: it is shown this one time.").waitFor()
    await page.getByRole("region", { name: "Secret", exact: true }).getByText(secret).waitFor()
    await page.getByLabel("I stored the secret; hide it").click()
    await eventuallyTrue(async () => !(await page.content()).includes(secret))
    await page.getByRole("button", { name: "Set the budget" }).click()
    await page.getByRole("dialog", { name: "Set a budget" }).getByRole("button", { name: "Set it" }).click()
    await page.getByText(/may spend \$5\.00 a day/).waitFor()
    await page.getByRole("button", { name: "Go on to the home page" }).click()
    await page.getByRole("heading", { name: "Needs attention" }).waitFor()
  })

  it("says how far it has looked for what needs attention", async () => {
    const { answer, page } = await portal.open("/keys")
    const body = { limits: [], keys_looked_at: 500, looked_back_to: null, left_out: 3 }
    await answer(/\/limits\/state\?/, { body })
    await page.goto(`${portal.gateway.control}/admin-ui/`)
    await page.getByText("Looks only at the 100 fullest limits.").waitFor()
  })

  it("is over once there was a request: the home page has numbers, and each part fails by itself", async () => {
    const { answer, page, problems } = await portal.open("/")
    await page.getByRole("region", { name: "Spend today" }).waitFor()
    await page.getByRole("figure", { name: "Tokens" }).waitFor()
    const edges = page.getByRole("region", { name: "Requests", exact: true }).locator(".recharts-area-curve[d]")
    await eventuallyTrue(async () => (await edges.count()) === 1) // that of the successes: no request has failed
    await page.getByText("1 active key · 10 of 10 routes enabled · 0 of 0 services enabled").waitFor()
    await page.getByRole("region", { name: "Our overhead" }).getByRole("link").click()
    await page.getByRole("figure", { name: "Overhead of the gateway" }).waitFor()
    await page.goBack()
    await page.getByText(/· 0 policy layers · \d+ audit events in 24 hours$/).waitFor()
    await page.getByRole("link", { name: /audit events in 24 hours$/ }).click()
    await page.waitForURL(/\/audit\?range=24h/)
    await page.getByRole("table", { name: "Audit events" }).waitFor()
    const weak = await portal.open("/", { scopes: ["usage:read"] })
    await weak.page.getByText("10 of 10 routes enabled").waitFor()
    assert.strictEqual(await weak.page.getByText(/policy layer|audit event/).count(), 0)
    await page.goto(`${portal.gateway.control}/admin-ui/`)
    const attention = page.getByRole("region", { name: "Needs attention" })
    await attention.getByText(/^process (ready|degraded) \d+ findings?$/).waitFor()
    problems.expect(/^500 GET/)
    await answer(/\/limits\/state/, { status: 500 })
    const takeBack = await answer(/\/audit-events\/verification/, { status: 500 })
    await page.reload()
    const failed = page.getByText(/Could not look at limits/)
    await eventuallyTrue(async () => (await failed.innerText()).includes("the audit log"))
    await takeBack()
    await page.getByRole("button", { name: "Try again" }).click()
    await eventuallyTrue(async () => !(await failed.innerText()).includes("the audit log"))
    await page.getByRole("figure", { name: "Tokens" }).waitFor()
  })

  it("names the models that were refused for want of a price, and so do the prices, before all others", async () => {
    const { raw } = await createKey(portal.gateway, { name: "strict", policy: { unpriced_models: "refuse" } })
    const refused = await fetch(`${portal.gateway.proxy}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${raw}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "wanted <b>model</b>", messages: [{ role: "user", content: "Hello" }] })
    })
    assert.strictEqual(refused.status, 403)
    const isRecorded = async () =>
      JSON.stringify(await portal.gateway.operate("GET", "/models?priced=false")).includes("wanted")
    await eventuallyTrue(isRecorded)
    const { page } = await portal.open("/models")
    const row = page.getByRole("table", { name: "Models" }).getByRole("row").nth(1)
    await row.getByText("wanted <b>model</b>").waitFor()
    await row.getByText("1 request refused for it").waitFor()
    await page.goto(`${portal.gateway.control}/admin-ui/`)
    await page.getByText("has no price, and 1 request refused for it in 30 days").waitFor()
  })

  it("does not begin anew after a quiet month, and numbers that cannot be read are not zero", async () => {
    const { answer, page } = await portal.open("/")
    const tile = (name: string) => page.getByRole("region", { name, exact: true })
    const nothing = await answer(/usage\/timeseries/, { body: [] })
    await page.reload()
    await tile("Spend today").getByText("$0", { exact: true }).waitFor()
    assert.strictEqual(await page.getByText("Four steps, and it is in use.").count(), 0)
    await nothing()
    const failing = await answer(/usage\/timeseries/, { status: 500, message: "The database is away." })
    await page.reload()
    for (const name of ["Requests a second", "Refused / errors", "Our overhead", "Spend today"]) {
      await tile(name).getByText("not known").waitFor()
      assert.match(await tile(name).innerText(), /The database is away\.\s+internal_error · request req-of-the-test/)
      assert.notMatch(await tile(name).innerText(), /\$0|0 refused|no request/)
    }
    const blind = await answer(/admin\/(limits|models|keys|system)|usage\/summary|tasks\//, {
      status: 500,
      message: "The database is away."
    })
    await page.reload()
    await page.getByText(/^Could not look at limits, keys that expire/).waitFor()
    assert.strictEqual(await page.getByText("Nothing needs you").count(), 0)
    await blind()
    await failing()
    await tile("Spend today").getByRole("button", { name: "Try again: Spend today" }).press("Enter")
    await tile("Spend today")
      .getByText(/in all of yesterday/)
      .waitFor()
  })

  it("has charts in the time zone of the range, whose buckets are picked with the keyboard", async () => {
    const minutesOf = async (search: string) => {
      const { page } = await portal.open(`/?range=24h${search}`, { timezone: "Asia/Kolkata" })
      const chart = page.getByRole("figure", { name: "Requests by their result" })
      await chart.getByText("Table", { exact: true }).click()
      const time = chart.getByRole("rowheader").first()
      const texts = [await time.innerText(), await chart.locator("figcaption").innerText()]
      return { page, time, minutes: texts.map((text) => /\d\d:(\d\d)/.exec(text)?.[1]) }
    }
    assert.deepStrictEqual((await minutesOf("")).minutes, ["30", "30"])
    const { minutes, page, time } = await minutesOf("&utc=true")
    assert.deepStrictEqual(minutes, ["00", "00"])
    await time.getByRole("button").press("Enter")
    await page.waitForURL(/range=\d{4}.*Z\.\./)
    const other = await portal.open("/?range=24h")
    await other.page.getByRole("figure", { name: "Tokens" }).getByRole("application").focus()
    await other.page.keyboard.press("ArrowRight")
    await other.page.getByRole("figure", { name: "Tokens" }).locator("strong").waitFor()
    await other.page.keyboard.press("Enter")
    await other.page.waitForURL(/range=\d{4}.*Z\.\./)
  })

  it("names the budget that all keys share beside what was spent", async () => {
    const shared = { daily_budget_usd: 40 }
    const layer = await portal.gateway.operate("POST", "/policy-layers", { kind: "global", shared })
    const { page } = await portal.open("/")
    await page.getByRole("region", { name: "Spend", exact: true }).getByText("budget of a day $40").waitFor()
    await portal.gateway.operate("DELETE", `/policy-layers/${Object(layer).id}`)
  })

  it("sums up what all projects spent, and draws those that spent less as all others", async () => {
    const { gateway } = portal
    await gateway.operate("PUT", "/model-prices/gpt-5", { input_usd_per_million: 1, output_usd_per_million: 1_000 })
    const spend = async (n: number) => {
      const project = await gateway.operate("POST", "/projects", { name: `spender ${n}` })
      const { raw } = await createKey(gateway, { owner_type: "project", project_id: Object(project).id })
      const answer = await fetch(`${gateway.proxy}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${raw}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: "hello" }] })
      })
      assert.strictEqual(answer.status, 200)
    }
    for (let n = 0; n < 24; n++) await spend(n)
    const { page } = await portal.open("/")
    await eventuallyTrue(async () => {
      const series = [await gateway.operate("GET", "/usage/timeseries?interval=day")].flat()
      const spent = series.reduce((sum: number, bucket) => sum + Object(bucket).summary.estimated_cost_usd, 0)
      await page.reload()
      const tile = page.getByRole("region", { name: "Spend today" })
      await tile.getByText(/in all of yesterday/).waitFor()
      const shown = Number(/\$([\d.]+)/.exec(await tile.innerText())?.[1])
      return Math.abs(shown / spent - 1) < 0.02
    })
    const chart = page.getByRole("figure", { name: "Spend by project" })
    await chart.getByText("Table", { exact: true }).click()
    await chart.getByRole("columnheader", { name: "all others" }).waitFor()
  })

  it("has a live chart that the arrow keys read", async () => {
    // the home page of an installation without requests has none
    const { axe, page } = await portal.open("/requests")
    const chart = page.getByRole("figure", { name: "Requests that end, by the second" })
    const reader = chart.getByRole("slider")
    await reader.focus()
    // the seconds before the page was opened have no value
    await eventuallyTrue(async () => {
      await page.keyboard.press("End")
      return (await chart.getByText(/^\d\d:\d\d:\d\d: .*\/s/).count()) > 0
    })
    assert.match((await reader.getAttribute("aria-valuetext")) ?? "", /^\d\d:\d\d:\d\d: /)
    assert.deepStrictEqual(await axe(), [])
  })

  it("is followed by usage: by group and measure, compared, exported, kept as a view", async () => {
    const { axe, page } = await portal.open("/usage?group=model&measure=requests")
    const table = page.getByRole("table", { name: "Usage by model" })
    await table.getByText("gpt-5").waitFor()
    assert.deepStrictEqual(await axe(), [])
    await page.getByRole("button", { name: "Export" }).click()
    const saved = page.waitForEvent("download")
    await page.getByRole("menuitem", { name: "This table as CSV" }).click()
    assert.strictEqual((await saved).suggestedFilename(), "usage-by-model.csv")
    await page.getByRole("button", { name: "Views" }).click()
    await page.getByRole("menuitem", { name: "Save this view …" }).click()
    await page.getByRole("textbox", { name: "Name" }).fill("<b>mine</b>")
    await page.keyboard.press("Enter")
    await page.getByRole("button", { name: "Views" }).click()
    await page.getByRole("menuitem", { name: "Cost by project" }).click()
    await page.waitForURL(/group=project/)
    await page.getByRole("button", { name: "Views" }).click()
    await page.getByRole("menuitem", { name: "<b>mine</b>", exact: true }).click()
    await page.waitForURL(/group=model/)
    await table.getByText("gpt-5").click()
    await page.getByRole("dialog", { name: /gpt-5/ }).getByText("Refused by budgets").waitFor()
    await page.keyboard.press("Escape")
    await page.getByRole("combobox", { name: "Split the chart by" }).click()
    await page.getByRole("option", { name: "Status code" }).click()
    await page.waitForURL(/split=code/)
    const chart = page.getByRole("figure", { name: "Requests over time" })
    await chart.getByText("Table", { exact: true }).click()
    await chart.getByRole("columnheader", { name: "200" }).waitFor()
    // the table keeps its groups, and the drawer has the parts of one of them
    await page.goto(`${page.url().replace("split=code", "split=key")}&open=gpt-5`)
    await page.getByRole("dialog", { name: /gpt-5/ }).getByRole("heading", { name: "By key" }).waitFor()
    await page.goto(page.url().replace(/\?.*/, "?group=task_type&open=scan"))
    await page.getByRole("table", { name: "Usage by type of the task" }).getByText("requests without a task").waitFor()
    await page.getByRole("dialog", { name: /scan/ }).getByRole("link", { name: "Its tasks" }).click()
    await page.waitForURL(/\/tasks\?q=type/)
  })

  it("draws the types of tasks over time, in the chart and in each row", async () => {
    const { answer, axe, page } = await portal.open("/usage?group=task_type&measure=requests&range=24h")
    const table = page.getByRole("table", { name: "Usage by type of the task" })
    await table.getByRole("img", { name: "Requests of requests without a task over the range" }).waitFor()
    const panel = page.getByRole("region", { name: "Requests over time" })
    await panel.getByText("by type of the task", { exact: true }).waitFor()
    const named = ([group]: ReadonlyArray<unknown>) =>
      ["scan", "unknown"].map((name) => ({ ...Object(group), name, display_name: name }))
    const operate = async (path: string) => named([await portal.gateway.operate("GET", path)].flat())
    await answer(/usage\/by-task-type/, { body: await operate("/usage/by-task-type") })
    await answer(/usage\/timeseries.*split=task_type/, { body: await operate("/usage/timeseries?split=task_type") })
    await page.reload()
    await table.getByRole("img", { name: "Requests of scan over the range" }).waitFor()
    await table.getByRole("img", { name: "Requests of tasks without a known type over the range" }).waitFor()
    await panel.getByText("Table", { exact: true }).click()
    await panel.getByRole("columnheader", { name: "scan" }).waitFor()
    assert.deepStrictEqual(await axe(), [])
    // other groups are split by it, too
    await page.goto(`${portal.gateway.control}/admin-ui/usage?group=model&measure=requests&open=gpt-5&split=task_type`)
    await page.getByRole("dialog", { name: /gpt-5/ }).getByRole("heading", { name: "By type of the task" }).waitFor()
    await panel.getByText("by type of the task", { exact: true }).waitFor()
  })

  it("leads from an endpoint of a service to its requests", async () => {
    const [model] = Object(await portal.gateway.operate("GET", "/usage/by-model"))
    const { answer, axe, page } = await portal.open("/")
    const name = "GET /items/{id}"
    await answer(/usage\/by-endpoint/, {
      body: [
        { ...model, name, display_name: name },
        { ...model, name: "none" }
      ]
    })
    await page.goto(`${portal.gateway.control}/admin-ui/usage?group=endpoint&measure=requests`)
    const table = page.getByRole("table", { name: "Usage by endpoint" })
    await table.getByText("requests without an endpoint").waitFor()
    await table.getByText(name).click()
    const drawer = page.getByRole("dialog", { name })
    await drawer.getByText("Refused by budgets").waitFor()
    assert.deepStrictEqual(await axe(), [])
    await drawer.getByRole("link", { name: "Its requests" }).click()
    await page.waitForURL(({ searchParams }) => searchParams.get("endpoint") === "/items/{id}")
    assert.strictEqual(new URL(page.url()).searchParams.get("method"), "GET")
  })

  it("has the interval that a person chooses, or the server's sentence", async () => {
    const { answer, page, problems } = await portal.open("/usage?group=model&measure=requests&range=24h")
    const panel = page.getByRole("region", { name: "Requests over time" })
    const choose = async (interval: string) => {
      await page.getByRole("combobox", { name: "Interval" }).click()
      await page.getByRole("option", { name: interval }).click()
      await page.waitForURL(({ searchParams }) => searchParams.get("interval") === interval)
    }
    await panel.getByText("Table", { exact: true }).click()
    await eventuallyTrue(async () => (await panel.getByRole("rowheader").count()) >= 24)
    await choose("day")
    await eventuallyTrue(async () => (await panel.getByRole("rowheader").count()) <= 2)
    problems.expect(/^400 GET/)
    await page.goto(`${portal.gateway.control}/admin-ui/usage?group=model&measure=requests&range=7d&interval=minute`)
    await panel.getByText(/Sums by the minute are kept for 48 hours/).waitFor()
    // an answer that is full lacks the end of the range
    const [one] = Object(await portal.gateway.operate("GET", "/usage/timeseries?split=model"))
    await answer(/usage\/timeseries.*split_limit=50/, { body: Array.from({ length: 3_000 }, () => one) })
    const asked = page.waitForRequest(/usage\/timeseries.*split_limit=2&/)
    await page.goto(`${portal.gateway.control}/admin-ui/usage?group=model&measure=requests&range=24h&interval=minute`)
    await asked
    await panel.getByText(/by model, only the 2 with the most requests/).waitFor()
  })

  it("cuts a long name within its card, with an ellipsis", async () => {
    const [model] = Object(await portal.gateway.operate("GET", "/usage/by-model"))
    const name = "m".repeat(120)
    const { answer, page } = await portal.open("/", { width: 360 })
    await answer(/usage\/by-model/, { body: [{ ...model, name, display_name: name }] })
    await page.goto(`${portal.gateway.control}/admin-ui/usage?group=model`)
    const shown = page.getByRole("table", { name: "Usage by model" }).getByTitle(name)
    await shown.waitFor()
    const widths = await shown.evaluate((bdi) => [bdi.getBoundingClientRect().right, bdi.scrollWidth - bdi.clientWidth])
    const card = await shown.evaluate((bdi) => bdi.closest("td")?.getBoundingClientRect().right ?? 0)
    assert.isAtMost(widths[0] ?? Number.POSITIVE_INFINITY, card + 1)
    // the browser ends what does not fit with an ellipsis
    assert.isAbove(widths[1] ?? 0, 0)
  })

  it("does not draw a compared range that cannot be read as one without requests", async () => {
    const { answer, page } = await portal.open("/usage?group=model&measure=requests&compare=previous")
    const panel = page.getByRole("region", { name: "Requests over time" })
    await panel.getByRole("figure").waitFor()
    await answer(/usage\/timeseries.*timeseries_limit=1000/, { status: 500, message: "The database is away." })
    await page.reload()
    await panel.getByText("The database is away.").waitFor()
    assert.strictEqual(await panel.getByRole("figure").count(), 0)
  })

  it("has a place for each time of a range, with or without requests", async () => {
    const [key] = Object(await portal.gateway.operate("GET", "/keys?limit=1"))
    const { page } = await portal.open(`/keys/${key.id}?range=1h`)
    const chart = page.getByRole("figure", { name: "Requests", exact: true })
    await chart.getByText("Table", { exact: true }).click()
    assert.strictEqual(await chart.getByRole("rowheader").count(), 60)
    // minutes of so long ago are not kept, and the server refuses to look for them
    const at = (daysAgo: number) => new Date(Date.now() - daysAgo * 86_400_000).toISOString()
    await page.goto(`${portal.gateway.control}/admin-ui/system?range=${at(3)}..${at(2.9)}`)
    await page
      .getByRole("region", { name: "Our overhead", exact: true })
      .getByText("No request in this range.")
      .waitFor()
    await page.goto(`${portal.gateway.control}/admin-ui/usage?range=${at(3)}..${at(2.9)}`)
    await page.getByRole("region", { name: "Average duration" }).getByText("–", { exact: true }).waitFor()
  })

  it("lists the unused keys of one project", async () => {
    const project = Object(await portal.gateway.operate("POST", "/projects", { name: "zebra crossing" }))
    const unused = { owner_type: "project", project_id: project.id, name: "striped" }
    await portal.gateway.operate("POST", "/keys", unused)
    await createKey(portal.gateway, { name: "of nobody" })
    const { axe, page } = await portal.open("/usage?tab=unused")
    const table = page.getByRole("table", { name: "Unused keys" })
    await table.getByText("of nobody").waitFor()
    await table.getByText("striped").waitFor()
    await page.getByRole("combobox", { name: "Project" }).fill("zeb")
    await page.getByRole("option", { name: "zebra crossing" }).click()
    await page.waitForURL(({ searchParams }) => searchParams.get("project_id") === project.id)
    await table.getByText("of nobody").waitFor({ state: "detached" })
    await table.getByText("striped").waitFor()
    assert.deepStrictEqual(await axe(), [])
  })
})

import { mkdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Redacted, Scope } from "effect"
import type { Page } from "playwright-core"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"
import { eventuallyTrue } from "./EventuallyTrue.ts"
import { describePortal } from "./PortalBrowser.ts"
import { type Filled, fill } from "./TypicalInstallation.ts"

/** `SVC_TEST_PICTURES_OF_GUIDES=1` takes the pictures of the README and the guides again. */
const isWanted = process.env["SVC_TEST_PICTURES_OF_GUIDES"] === "1"
const folder = fileURLToPath(new URL("../../src/portal/pictures/", import.meta.url))

/** A month of requests of the keys that are there: more by day than by night, and few at weekends. */
const history = `
  INSERT INTO usage_events (id, created_at, request_id, key_id, project_id, team_id, route, model, provider, status,
    status_code, error_code, latency_ms, usage_source, input_tokens, output_tokens, total_tokens, cached_input_tokens,
    cost_nanos, cost_source, streamed, fallback_count, first_byte_ms, gateway_ms, client)
  SELECT gen_random_uuid(), at, 'request-' || made.n, k.id, k.project_id, k.team_id, '/v1/chat/completions', model, 'upstream',
    CASE WHEN code < 400 THEN 'success' ELSE 'failure' END, code, CASE code WHEN 429 THEN 'rate_limit_exceeded' WHEN 403 THEN 'policy_denied' END,
    300 + (power(luck, 4) * 9000)::integer, 'reported', tokens, tokens / 4, tokens + tokens / 4, tokens / 3,
    tokens * 3000, 'price_table', luck < 0.6, 0, 200 + (luck * 800)::integer, 1 + made.n % 3, 'openai-python'
  FROM (
    SELECT n, luck, at, 400 + (luck * 3000)::integer AS tokens,
      (ARRAY['gpt-5', 'gpt-5', 'claude-sonnet-5', 'gpt-5-mini'])[1 + n % 4] AS model,
      CASE WHEN luck < 0.01 THEN 429 WHEN luck < 0.014 THEN 403 WHEN luck < 0.018 THEN 502 ELSE 200 END AS code,
      floor(random() * (SELECT count(*) FROM api_keys))::integer AS place
    FROM (
      SELECT n, random() AS luck, now() - random() * interval '30 days' AS at FROM generate_series(1, 60000) AS n
    ) AS drawn
    WHERE random() < (0.15 + 0.85 * greatest(0, sin((extract(hour FROM at) - 6) / 24 * 2 * pi())))
      * CASE WHEN extract(isodow FROM at) > 5 THEN 0.25 ELSE 1 END
  ) AS made JOIN (SELECT id, project_id, team_id, row_number() OVER (ORDER BY created_at) - 1 AS rank FROM api_keys) AS k ON k.rank = place`

describe.skipIf(!isWanted || TemporaryDatabase.server === null)("the pictures of the guides", () => {
  const environment: Record<string, string> = {}
  const scope = Scope.makeUnsafe()
  const query = (statement: string) =>
    PgConnection.make({ url: Redacted.make(environment["DATABASE_URL"] ?? "") }).pipe(
      Effect.flatMap((session) => session.query(statement)),
      Effect.scoped,
      Effect.runPromise
    )
  beforeAll(async () => {
    environment["DATABASE_URL"] = Redacted.value(
      await TemporaryDatabase.make.pipe(Scope.provide(scope), Effect.runPromise)
    )
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  describePortal(
    "of an installation with a month behind it",
    (portal) => {
      let installation: Filled | undefined
      beforeAll(async () => {
        mkdirSync(folder, { recursive: true })
        installation = await fill(portal, { longestName: "grace", longestModel: "gpt-5-mini" })
        await query(history)
        await query("UPDATE usage_rolled SET until = 'epoch', minutes_until = now() - interval '3 hours'")
        await eventuallyTrue(async () => {
          const summed = await query("SELECT 1 FROM usage_rolled WHERE until > now() - interval '15 minutes'")
          return summed.rowCount === 1
        }, 240_000)
      }, 300_000)

      interface Picture {
        readonly name: string
        readonly path: () => string
        /** Shows what the page is for. */
        readonly act?: (page: Page) => Promise<unknown>
      }
      const pictures: ReadonlyArray<Picture> = [
        { name: "home", path: () => "/?range=30d" },
        { name: "requests", path: () => "/requests?range=24h" },
        { name: "limits", path: () => "/limits" },
        { name: "key", path: () => `/keys/${installation?.keyId}?range=30d` },
        {
          name: "policies",
          path: () => `/policies/simulate?key_id=${installation?.keyId}`,
          act: async (page) => {
            await page.getByRole("button", { name: "Decide", exact: true }).click()
            await page.getByRole("region", { name: "Decision" }).waitFor()
          }
        },
        {
          name: "guardrails",
          path: () => "/guardrails/pii-redact?tab=bench",
          act: async (page) => {
            await page.getByRole("button", { name: "Try it" }).click()
            await page.getByText("[EMAIL_1]").first().waitFor()
          }
        },
        { name: "board", path: () => "/tasks/board" },
        {
          name: "graph",
          path: () => "/tasks",
          act: async (page) => {
            await page
              .getByRole("link", { name: /^book-\d+$/ })
              .last()
              .click()
            await page.getByRole("tab", { name: "Graph" }).click()
            await page.locator(".react-flow__node").first().waitFor()
          }
        },
        { name: "dead-letter", path: () => `/dead-letters/${installation?.letterId}` }
      ]

      it.each(pictures)("$name", async ({ act, name, path }) => {
        const { page } = await portal.open(path())
        await page.setViewportSize({ width: 1280, height: 800 })
        await act?.(page)
        await eventuallyTrue(async () => (await page.locator("main [aria-busy=true]").count()) === 0)
        // charts are drawn a moment after their numbers are there
        await page.waitForTimeout(1_000)
        await page.screenshot({ path: `${folder}${name}.png` })
        assert.isTrue(await page.locator("h1").isVisible())
      })
    },
    { example: true, environment }
  )
})

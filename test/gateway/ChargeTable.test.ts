import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { RouteId } from "../../src/policy/routes/CanonicalRoute.ts"
import { Database } from "../../src/services/Database.ts"
import * as Guides from "../Guides.ts"
import * as Proxy from "./Proxy.ts"
import * as Upstream from "./ScriptedUpstream.ts"

interface Row {
  /** The row of the guide's table. */
  readonly says: readonly [request: string, answer: string, reserved: string, charged: string]
  readonly target?: string
  readonly body: object
  readonly upstream: Upstream.Script
  readonly configured?: readonly [RouteId, { readonly mode?: string; readonly responseBytes?: number }]
  /** The client hangs up once the upstream has the request. */
  readonly leaves?: boolean
  /** Tokens of input and output, at a thousand and two thousand nano-dollars; or both as they are. */
  readonly reserved: readonly [input: number, output: number] | { readonly tokens: number; readonly nanos: number }
  readonly charged: Row["reserved"]
}

const large = { model: "large" }
const bounded = { ...large, max_tokens: 100, max_completion_tokens: 1 }
const usage = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 }
const embeddings = { target: "/v1/embeddings", body: { ...large, input: "abcdefgh" } } as const
const delta = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`
const json = ["content-type", "application/json"]

const rows: ReadonlyArray<Row> = [
  {
    says: [
      "chat, response or message with a bound",
      "reports its usage",
      "the estimated input, and the largest bound that any member names, for each answer (`n`)",
      "what it reports"
    ],
    body: { ...bounded, n: 2 },
    upstream: Upstream.json({ usage }),
    reserved: [3, 200],
    charged: [10, 20]
  },
  {
    says: [
      "without a bound",
      "reports its usage",
      "4,096 tokens for each answer, or the policy's bound, or what fits the key's limits; written into the request",
      "what it reports"
    ],
    body: large,
    upstream: Upstream.json({ usage }),
    reserved: [2, 4096],
    charged: [10, 20]
  },
  {
    says: [
      "any of them",
      "reports a total above input and output, as some do of reasoning",
      "as above",
      "the rest of the total as output"
    ],
    body: bounded,
    upstream: Upstream.json({ usage: { ...usage, total_tokens: 90 } }),
    reserved: [2, 100],
    charged: [10, 80]
  },
  {
    says: [
      "any of them",
      "a stream that is cut, that the client leaves, or that reports nothing",
      "as above",
      "the estimated input, and one token per four bytes of text, at most the bound"
    ],
    body: { ...bounded, stream: true },
    upstream: Upstream.fails("body", "reset", Upstream.events(delta("a".repeat(40)), delta("b".repeat(40)))),
    reserved: [3, 100],
    charged: [3, 20]
  },
  {
    says: [
      "any of them",
      "JSON that reports nothing, or is cut",
      "as above",
      "the estimated input, and one token per four bytes of it, at most the bound"
    ],
    body: bounded,
    upstream: Upstream.answers(200, json, `{"said":"${"x".repeat(69)}"}`),
    reserved: [2, 100],
    charged: [2, 20]
  },
  {
    says: [
      "any of them",
      "JSON or an event that is too long to keep (4 MiB, 1 MiB)",
      "as above",
      "what its last 64 KiB report, else as if it reported nothing"
    ],
    body: bounded,
    configured: ["chat-completions", { responseBytes: 10_000_000 }],
    upstream: Upstream.answers(
      200,
      json,
      `{"picture":"${"x".repeat(5_000_000)}",`,
      `"usage":${JSON.stringify(usage)}}`
    ),
    reserved: [2, 100],
    charged: [10, 20]
  },
  {
    says: [
      "any of them",
      "refused for its `Content-Length`",
      "as above",
      "the estimated input, and one token per four bytes, at most the bound"
    ],
    body: bounded,
    upstream: Upstream.answers(200, [...json, "content-length", "2000000"], "{"),
    reserved: [2, 100],
    charged: [2, 100]
  },
  {
    says: ["any of them", "is compressed, or no text", "as above", "the reservation"],
    body: bounded,
    upstream: Upstream.answers(200, [...json, "content-encoding", "gzip"], "\u001f\u008b"),
    reserved: [2, 100],
    charged: [2, 100]
  },
  {
    says: ["any of them", "none: the client left before it began", "as above", "the estimated input"],
    body: bounded,
    upstream: Upstream.hangs(),
    leaves: true,
    reserved: [2, 100],
    charged: [2, 0]
  },
  {
    says: ["any request", "an upstream error, or no response", "as above", "nothing"],
    body: bounded,
    upstream: Upstream.json({ error: {}, usage }, 500),
    reserved: [2, 100],
    charged: [0, 0]
  },
  {
    says: [
      "for a model without a price",
      "reports no cost",
      "in money $0.01, or the budget if it is less",
      "in money $0.01"
    ],
    body: { ...bounded, model: "other" },
    upstream: Upstream.json({ usage }),
    reserved: { tokens: 102, nanos: 10_000_000 },
    charged: { tokens: 30, nanos: 10_000_000 }
  },
  {
    says: [
      "for any model",
      "reports its cost",
      "as above",
      "in money what it reports; a cost of zero where the model has no price"
    ],
    body: bounded,
    upstream: Upstream.json({ usage: { ...usage, cost: 0.5 } }),
    reserved: [2, 100],
    charged: { tokens: 30, nanos: 500_000_000 }
  },
  {
    says: ["embeddings", "reports its usage", "the estimated input", "what it reports"],
    ...embeddings,
    upstream: Upstream.json({ usage: { prompt_tokens: 10, total_tokens: 10 } }),
    reserved: [4, 0],
    charged: [10, 0]
  },
  {
    says: ["embeddings", "reports nothing, or is refused for its length", "the estimated input", "the estimated input"],
    ...embeddings,
    upstream: Upstream.answers(200, [...json, "content-length", "2000000"], "{"),
    reserved: [4, 0],
    charged: [4, 0]
  },
  {
    says: [
      "message batch",
      "its acknowledgement",
      "the estimated input, and the bound of each request, or 4,096 tokens",
      "the reservation: the batch runs later"
    ],
    target: "/v1/messages/batches",
    body: { requests: [{ params: { ...large, max_tokens: 10 } }, { params: large }] },
    upstream: Upstream.json({ id: "b" }),
    reserved: [5, 4106],
    charged: [5, 4106]
  },
  {
    says: [
      'response with `"background": true`',
      "its acknowledgement, its stream, or none because the client left",
      "as without it",
      "the reservation: the response is made later, and fetched by a request that the gateway does not bill"
    ],
    target: "/v1/responses",
    body: { ...large, background: true, max_output_tokens: 100 },
    upstream: Upstream.json({ usage: null }),
    reserved: [3, 100],
    charged: [3, 100]
  },
  {
    says: [
      "in direct mode",
      "any success; it is not read",
      "as in managed mode, but only a policy's bound is written",
      "the reservation; the record has its cost (`estimate`), and no tokens"
    ],
    configured: ["chat-completions", { mode: "direct_upstream_passthrough" }],
    body: bounded,
    upstream: Upstream.json({ usage }),
    reserved: [2, 100],
    charged: [2, 100]
  },
  {
    says: ["`count_tokens`, models, batches that are looked up or cancelled", "any", "nothing", "nothing"],
    target: "/v1/messages/count_tokens",
    body: { ...large, max_tokens: 100 },
    upstream: Upstream.json({ input_tokens: 5 }),
    reserved: [0, 0],
    charged: [0, 0]
  }
]

layer(Proxy.database)("The guide's table of charges", (it) => {
  it.effect("has these rows", () =>
    Effect.sync(() => {
      assert.deepStrictEqual(
        Guides.rows(Guides.section("src/gateway/README.md", "## Reservation and charging")),
        rows.map(({ says }) => `| ${says.join(" | ")} |`)
      )
    })
  )

  it.effect.each(rows.map((row) => [row.says.slice(0, 2).join(": "), row] as const))("%s", ([, row]) =>
    Effect.gen(function* () {
      let held: Effect.Effect<{ readonly tokens: number; readonly nanos: number }> = Effect.die("not asked yet")
      const seen: Array<unknown> = []
      const gateway = yield* Proxy.make({
        configured: Effect.andThen(priced, row.configured ? Proxy.configureRoute(...row.configured) : Effect.void),
        upstream: (sink, exchange) =>
          Effect.andThen(
            Effect.tap(held, (amount) => Effect.sync(() => seen.push(amount))),
            row.upstream(sink, exchange)
          )
      })
      const key = yield* Proxy.issueKey({ tpm_limit: 100_000, daily_budget_usd: 5 })
      held = gateway.held(key.id)
      const asking = yield* Effect.forkChild(
        gateway.ask({ target: row.target ?? Proxy.chat, headers: key.headers, body: row.body })
      )
      if (row.leaves === true) {
        yield* Effect.repeat(Effect.yieldNow, { until: () => seen.length > 0 })
        yield* Fiber.interrupt(asking)
      } else yield* Fiber.join(asking)
      assert.deepStrictEqual<unknown>([...seen, yield* held], [amount(row.reserved), amount(row.charged)])
      const [record] = yield* gateway.records
      assert.strictEqual(record?.cost_nanos ?? 0, amount(row.charged).nanos)
    })
  )
})

const amount = (row: Row["reserved"]): { readonly tokens: number; readonly nanos: number } =>
  "tokens" in row ? row : { tokens: row[0] + row[1], nanos: row[0] * 1000 + row[1] * 2000 }

const priced = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`INSERT INTO model_prices (model, input_nanos_per_million, output_nanos_per_million) VALUES
    ('large', 1000000000, 2000000000)`
})

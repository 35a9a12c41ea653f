import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import * as RunningGateway from "../RunningGateway.ts"
import { portOf } from "../upstream/SimulatorServer.ts"
import * as Deployment from "./Deployment.ts"

const concurrent = 200
const budget = 0.05
/** Nano-dollars for a token. */
const inputPrice = 1_000
const outputPrice = 10_000

/** An upstream that lays `extra_body` over the request, obeys whichever bound is the largest, answers all that it allows, and knows what that cost. */
class Greedy {
  spent = 0

  answer(path: string, text: string, response: ServerResponse): void {
    const said: Asked = JSON.parse(text)
    const body: Asked = { ...said, ...said.extra_body }
    if (path.endsWith("/batches")) {
      for (const { params } of body.requests ?? []) this.#spend(params, text.length / body.requests!.length)
      end(response, { id: "batch", processing_status: "in_progress" })
      return
    }
    const output = this.#spend(body, text.length)
    const input = Math.ceil(text.length / 4)
    if (body.stream === true) {
      response.writeHead(200, { "content-type": "text/event-stream" })
      const delta = { choices: [{ index: 0, delta: { content: "word".repeat(Math.ceil(output / 20)) } }] }
      for (let event = 0; event < 20; event++) response.write(`data: ${JSON.stringify(delta)}\n\n`)
      // the usage comes only to those who stay
      return
    }
    const usage =
      path === "/v1/messages" || path === "/v1/responses"
        ? { input_tokens: input, output_tokens: output }
        : { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
    end(response, body.background === true ? { status: "queued", usage: null } : { usage })
  }

  #spend(request: Asked, bytes: number): number {
    const { max_completion_tokens = 0, max_output_tokens = 0, max_tokens = 0, n = 1 } = request
    const each = Math.max(max_completion_tokens, max_output_tokens, max_tokens)
    const output = (each === 0 ? 100_000 : each) * Math.max(1, n)
    this.spent += Math.ceil(bytes / 4) * inputPrice + output * outputPrice
    return output
  }
}

interface Asked {
  readonly max_completion_tokens?: number
  readonly max_output_tokens?: number
  readonly max_tokens?: number
  readonly n?: number
  readonly stream?: boolean
  readonly background?: boolean
  readonly extra_body?: Asked
  readonly requests?: ReadonlyArray<{ readonly params: Asked }>
}

const end = (response: ServerResponse, body: object) => {
  response.writeHead(200, { "content-type": "application/json" })
  response.end(JSON.stringify(body))
}

const textOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Uint8Array> = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

class Setting extends Context.Service<
  Setting,
  {
    readonly greedy: Greedy
    readonly gateways: ReadonlyArray<RunningGateway.RunningGateway>
    readonly deployment: Deployment.Deployment
  }
>()("test/e2e/Overspending/Setting") {
  static readonly layer = Layer.effect(
    Setting,
    Effect.gen(function* () {
      const greedy = new Greedy()
      const server = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const server = createServer(
            (request, response) => void textOf(request).then((text) => greedy.answer(request.url ?? "", text, response))
          )
          await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
          return server
        }),
        (server) =>
          Effect.sync(() => {
            server.closeAllConnections()
            server.close()
          })
      )
      const origin = `http://127.0.0.1:${portOf(server.address())}`
      const deployment = yield* Deployment.make({
        environment: {
          UPSTREAM_BASE_URL: origin,
          UPSTREAM_SERVICE_KEY: "secret",
          DIRECT_COMPAT_BASE_URL: origin,
          DIRECT_COMPAT_SERVICE_KEY: "secret"
        }
      })
      const first = yield* deployment.start()
      const operate = (method: string, path: string, body?: unknown) =>
        Effect.promise(() => first.operate(method, path, body))
      yield* operate("PUT", "/model-prices/m", {
        input_usd_per_million: inputPrice / 1000,
        output_usd_per_million: outputPrice / 1000
      })
      yield* operate("PATCH", "/family-b-routes/messages/mode", { mode: "direct_upstream_passthrough" })
      // it begins with both
      const second = yield* deployment.start({ role: "gateway" })
      return Setting.of({ greedy, gateways: [first, second], deployment })
    })
  )
}

/** Status of the answer; of one that is left, once it has shown half of its text. */
const send = (gateway: RunningGateway.RunningGateway, key: string, path: string, body: object, leaves: boolean) =>
  Effect.promise(async () => {
    const leaving = new AbortController()
    const response = await fetch(gateway.proxy + path, {
      method: "POST",
      signal: leaving.signal,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    if (leaves && response.status === 200 && response.body !== null) {
      const reader = response.body.getReader()
      let events = 0
      while (events < 20)
        events +=
          Buffer.from((await reader.read()).value ?? [])
            .toString()
            .split("data: ").length - 1
      leaving.abort()
    } else await response.text()
    return response.status
  })

interface Shape {
  readonly path?: string
  readonly body: object
  readonly leaves?: boolean
}

const shapes: ReadonlyArray<readonly [name: string, shape: Shape]> = [
  ["two bounds, of which the smaller is the protocol's", { body: { max_completion_tokens: 1, max_tokens: 2000 } }],
  ["no bound", { body: {} }],
  ["many answers without a bound", { body: { n: 40 } }],
  ["an unknown name beside the model", { body: { fallbacks: ["zzz"], max_tokens: 2000 } }],
  ["many answers in extra_body", { body: { extra_body: { n: 40 } } }],
  ["a bound in extra_body", { body: { max_tokens: 5, extra_body: { max_tokens: 2000 } } }],
  ["many answers with one", { body: { n: 10, max_tokens: 100 } }],
  ["responses in the background", { path: "/v1/responses", body: { background: true } }],
  ["batches", { path: "/v1/messages/batches", body: { requests: [{ params: { model: "m", max_tokens: 900 } }] } }],
  ["direct mode", { path: "/v1/messages", body: { max_tokens: 900 } }],
  ["the compatible upstream", { path: "/providers/compat/v1/chat/completions", body: {} }],
  ["streams that are left before their usage", { body: { stream: true, max_tokens: 2000 }, leaves: true }]
]

describe.skipIf(!Deployment.available)("200 concurrent requests, two processes and a daily budget of $0.05", () => {
  layer(Setting.layer, { excludeTestServices: true })((it) => {
    it.effect.each([...shapes])(
      "%s: spend what the budget holds",
      ([, { body, leaves = false, path = "/v1/chat/completions" }]) =>
        Effect.gen(function* () {
          const { deployment, gateways, greedy } = yield* Setting
          const key = yield* Effect.promise(() =>
            RunningGateway.createKey(gateways[0]!, { policy: { daily_budget_usd: budget } })
          )
          greedy.spent = 0
          const statuses = yield* Effect.all(
            Array.from({ length: concurrent }, (_, i) =>
              send(gateways[i % 2]!, key.raw, path, { model: "m", ...body }, leaves)
            ),
            { concurrency: "unbounded" }
          )
          const served = statuses.filter((status) => status === 200).length
          assert.isAbove(served, 0)
          assert.deepStrictEqual([...new Set(statuses.filter((status) => status !== 200))], [402])
          // the input is estimated, and names are no part of the estimate
          assert.isAtMost(greedy.spent, budget * 1e9 + served * 100 * inputPrice)
          const records = yield* deployment.recorded(key.id, concurrent)
          const charged = records.reduce((sum, { cost_nanos }) => sum + (cost_nanos ?? 0), 0)
          assert.isAtLeast(charged + served * 100 * inputPrice, greedy.spent)
        })
    )
  })
})

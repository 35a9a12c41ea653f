import { setImmediate } from "node:timers/promises"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import fc from "fast-check"
import { chatStream, split } from "../gateway/Streams.ts"
import * as RawConnection from "../RawConnection.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as ScriptedServer from "../upstream/ScriptedServer.ts"
import { hello } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

/** The tokens of a usage record. */
const Tokens = Schema.Struct({
  input: Schema.NullOr(Schema.Int),
  output: Schema.NullOr(Schema.Int),
  total: Schema.NullOr(Schema.Int),
  cached: Schema.NullOr(Schema.Int),
  cacheWrite: Schema.NullOr(Schema.Int),
  reasoning: Schema.NullOr(Schema.Int)
})
type Tokens = typeof Tokens.Type

/** What the upstream sends, and what must come of it however it is split. */
interface Stream {
  readonly sent: Buffer
  readonly due: Buffer
  readonly tokens: Tokens
}

/** How the upstream marks the end of its body, and where it cuts: sizes are used over and over. */
interface Splitting {
  readonly framing: "chunked" | "close" | "length"
  /** Behind the size of each chunk, a peer may say more. */
  readonly extension: string
  /** Of the body into HTTP chunks. */
  readonly chunks: ReadonlyArray<number>
  /** Of everything, head and chunk sizes included, into writes to the socket. */
  readonly writes: ReadonlyArray<number>
}

const framings = ["chunked", "close", "length"] as const

const inOne = [Number.MAX_SAFE_INTEGER]

const sizes: fc.Arbitrary<ReadonlyArray<number>> = fc.oneof(
  fc.constant([1]),
  fc.constant(inOne),
  fc.integer({ min: 1, max: 1_500 }).map((first) => [first, ...inOne]),
  fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 6 }),
  fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 6 })
)

const splittingOf = (framing: Splitting["framing"]): fc.Arbitrary<Splitting> =>
  fc.record({
    framing: fc.constant(framing),
    extension: fc.constantFrom("", ";part=one"),
    chunks: framing === "chunked" ? sizes : fc.constant(inOne),
    writes: sizes
  })

const piecesOf = (
  sent: Buffer,
  { chunks, extension, framing, writes }: Splitting,
  behind: string
): ReadonlyArray<Buffer> => {
  const type = ["content-type", "text/event-stream; charset=utf-8"]
  const head = {
    chunked: [...type, "transfer-encoding", "chunked"],
    close: [...type, "connection", "close"],
    length: [...type, "content-length", String(sent.length)]
  }[framing]
  const chunk = (content: Buffer) =>
    Buffer.concat([Buffer.from(`${content.length.toString(16)}${extension}\r\n`), content, Buffer.from("\r\n")])
  const body = framing === "chunked" ? [...split(sent, chunks), Buffer.alloc(0)].map(chunk) : [sent]
  return split(Buffer.concat([Buffer.from(ScriptedServer.head(200, head)), ...body, Buffer.from(behind)]), writes)
}

/** A gateway, and an upstream that answers each model name by a stream of its own, split in its own way. */
class Bench extends Context.Service<
  Bench,
  {
    readonly deployment: Deployment.Deployment
    readonly createKey: Effect.Effect<{ readonly raw: string; readonly id: string }>
    /** Asks once, and is answered by `pieces`; what came is not looked at. */
    readonly ask: (key: string, variant: Variant, pieces: ReadonlyArray<Buffer>, closes: boolean) => Promise<Asked>
  }
>()("test/e2e/StreamSplitting/Bench") {
  static readonly layer = Layer.effect(
    Bench,
    Effect.gen(function* () {
      const answers = new Map<string, { readonly pieces: ReadonlyArray<Buffer>; readonly closes: boolean }>()
      const requests = new Map<string, string>()
      const upstream = yield* ScriptedServer.serve(async (peer) => {
        for (;;) {
          const request = await peer.request()
          const model = /"model":"([^"]+)"/.exec(request)?.[1] ?? ""
          requests.set(model, request)
          const { closes, pieces } = answers.get(model) ?? { closes: true, pieces: [] }
          for (const piece of pieces) {
            await peer.write(piece)
            // what is written in the same turn would come as one
            await setImmediate()
          }
          if (closes) peer.end()
        }
      })
      const deployment = yield* Deployment.make({
        environment: { UPSTREAM_BASE_URL: upstream.origin, UPSTREAM_SERVICE_KEY: "k", LOG_LEVEL: "warn" }
      })
      const gateway = yield* deployment.start()
      let asked = 0
      return Bench.of({
        deployment,
        createKey: Effect.promise(() => RunningGateway.createKey(gateway)),
        ask: (key, { body, path }, pieces, closes) =>
          Effect.gen(function* () {
            const id = `stream-${asked++}`
            answers.set(id, { pieces, closes })
            const connection = yield* RawConnection.open(gateway.proxy)
            const fields = {
              authorization: `Bearer ${key}`,
              "content-type": "application/json",
              "x-request-id": id,
              connection: "close"
            }
            connection.write(RawConnection.request(`POST ${path}`, fields, JSON.stringify({ model: id, ...body })))
            const received = yield* connection.closed
            return { id, received, upstreamSaw: requests.get(id) ?? "" }
          }).pipe(Effect.scoped, Effect.runPromise)
      })
    })
  )
}

interface Asked {
  /** Of the request. */
  readonly id: string
  readonly received: string
  readonly upstreamSaw: string
}

interface Variant {
  readonly name: string
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  readonly stream: fc.Arbitrary<Stream>
}

const none: Tokens = { input: null, output: null, total: null, cached: null, cacheWrite: null, reasoning: null }

/** Characters of one to four bytes, and what a reader of pieces could take for the frame. */
const text = fc.string({
  unit: fc.constantFrom(..."ab", "é", "☃", "🚀", '"', "\\", "\n", "\r\n", "data:", "data: [DONE]", '"usage":{'),
  maxLength: 12
})

const count = fc.nat(5_000)

const told = fc.record({
  deltas: fc.array(text, { maxLength: 4 }),
  lineEnd: fc.constantFrom("\n", "\r\n"),
  /** Some upstreams end their last event with one line end, or none. */
  lineEndsLeftOut: fc.nat(2),
  counts: fc.tuple(count, count, count, count)
})
type Told = typeof told extends fc.Arbitrary<infer A> ? A : never

/** Events whose `data` name their type, with comments between them that keep the connection open. */
const untouched = (
  events: ReadonlyArray<{ readonly type: string; readonly [member: string]: unknown }>,
  { lineEnd, lineEndsLeftOut }: Told,
  tokens: Partial<Tokens>
): Stream => {
  const blocks = events.map((event) => [`event: ${event.type}`, `data: ${JSON.stringify(event)}`, "", ""].join(lineEnd))
  const bytes = Buffer.from(blocks.join(`: ping${lineEnd.repeat(2)}`))
  const sent = bytes.subarray(0, bytes.length - lineEndsLeftOut * lineEnd.length)
  return { sent, due: sent, tokens: { ...none, ...tokens } }
}

const responses = told.map((told) => {
  const [input, output, cached, reasoning] = told.counts
  const total = input + output
  const usage = {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: total
  }
  const events = [
    { type: "response.created", response: { id: "r", usage: null } },
    ...told.deltas.map((delta) => ({ type: "response.output_text.delta", delta })),
    { type: "response.completed", response: { id: "r", usage } }
  ]
  return untouched(events, told, { input, output, total, cached, reasoning })
})

const messages = told.map((told) => {
  const [fresh, output, cached, cacheWrite] = told.counts
  const input = fresh + cached + cacheWrite
  const usage = {
    input_tokens: fresh,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: cacheWrite,
    output_tokens: 1
  }
  const events = [
    { type: "message_start", message: { id: "m", usage } },
    ...told.deltas.map((text) => ({ type: "content_block_delta", delta: { type: "text_delta", text } })),
    { type: "message_delta", delta: {}, usage: { output_tokens: output } },
    { type: "message_stop" }
  ]
  return untouched(events, told, { input, output, total: input + output, cached, cacheWrite })
})

const chat = (hides: boolean): fc.Arbitrary<Stream> =>
  chatStream.map(({ asked, plain, usage }) => ({
    sent: asked,
    due: hides ? plain : asked,
    tokens: { ...none, input: usage.prompt_tokens, output: usage.completion_tokens, total: usage.total_tokens }
  }))

const chatPath = "/v1/chat/completions"

const variants: ReadonlyArray<Variant> = [
  {
    name: "chat completions with usage that was asked for",
    path: chatPath,
    body: { messages: hello, stream: true, stream_options: { include_usage: true } },
    stream: chat(false)
  },
  {
    name: "chat completions with usage that the gateway asks for and hides",
    path: chatPath,
    body: { messages: hello, stream: true },
    stream: chat(true)
  },
  {
    name: "responses",
    path: "/v1/responses",
    body: { input: "hello there", stream: true },
    stream: responses
  },
  {
    name: "messages",
    path: "/v1/messages",
    body: { max_tokens: 16, messages: hello, stream: true },
    stream: messages
  }
]

/** The record of a request, as far as a split could change it. */
const Accounted = Schema.Struct({
  request_id: Schema.String,
  status_code: Schema.Int,
  error_code: Schema.NullOr(Schema.String),
  usage_source: Schema.String,
  streamed: Schema.Boolean,
  ...Tokens.fields
})

const accountsOf = ({ recorded, rows }: Deployment.Deployment, keyId: string, count: number) =>
  Effect.andThen(
    recorded(keyId, count),
    rows(
      Accounted,
      `SELECT request_id, status_code, error_code, usage_source, streamed, input_tokens::int AS input,
        output_tokens::int AS output, total_tokens::int AS total, cached_input_tokens::int AS cached,
        cache_write_tokens::int AS "cacheWrite", reasoning_tokens::int AS reasoning
        FROM usage_events WHERE key_id = '${keyId}'`
    )
  )

/** Sends a stream through the gateway: the bytes are checked at once, the usage when all have been sent. */
type Send = (stream: Stream, splitting: Splitting, behind?: string) => Promise<Asked>

/**
 * Writing records takes longer than asking does, so the books are looked at once, after everything that `sending`
 * sends.
 */
const accounted = Effect.fnUntraced(function* (variant: Variant, sending: (send: Send) => Promise<unknown>) {
  const { ask, createKey, deployment } = yield* Bench
  const key = yield* createKey
  const expected = new Map<string, readonly [Tokens, Splitting]>()
  yield* Effect.promise(() =>
    sending(async (stream, splitting, behind = "") => {
      const pieces = piecesOf(stream.sent, splitting, behind)
      const asked = await ask(key.raw, variant, pieces, splitting.framing === "close")
      expected.set(asked.id, [stream.tokens, splitting])
      const { body, status, whole } = RawConnection.answerOf(asked.received)
      assert.deepStrictEqual([status, body.toString("latin1"), whole], [200, stream.due.toString("latin1"), true])
      assert.strictEqual(asked.upstreamSaw.includes('"include_usage":true'), variant.path === chatPath)
      return asked
    })
  )
  const accounts = yield* accountsOf(deployment, key.id, expected.size)
  assert.strictEqual(accounts.length, expected.size)
  for (const { request_id, ...account } of accounts) {
    const [tokens, splitting] = expected.get(request_id) ?? assert.fail(`nobody asked ${request_id}`)
    assert.deepStrictEqual(
      account,
      { status_code: 200, error_code: null, usage_source: "reported", streamed: true, ...tokens },
      `split by ${JSON.stringify(splitting)}`
    )
  }
})

const some = (stream: fc.Arbitrary<Stream>): ReadonlyArray<Stream> =>
  fc.sample(stream, { numRuns: 4, seed: 20_261_120 })

/** Nobody has asked for it: what a broken upstream, or an attacker behind it, sends along. */
const unasked = ScriptedServer.answer('data: {"for":"somebody else"}\n\n')

const runs = 40

describe.skipIf(!Deployment.available)("a stream, however it is split on its way", () => {
  layer(Bench.layer, { excludeTestServices: true })((it) => {
    for (const variant of variants) {
      it.effect.each([...framings])(
        `of ${variant.name}, at random (%s): the same bytes, and the same usage`,
        (framing) =>
          accounted(variant, (send) =>
            fc.assert(
              fc.asyncProperty(variant.stream, splittingOf(framing), async (stream, splitting) => {
                await send(stream, splitting)
              }),
              { numRuns: runs }
            )
          )
      )

      it.effect.each([...framings])(`of ${variant.name}, byte for byte and in one write (%s): the same`, (framing) =>
        accounted(variant, async (send) => {
          for (const stream of some(variant.stream)) {
            await send(stream, { framing, extension: "", chunks: [1], writes: [1] })
            await send(stream, { framing, extension: "", chunks: inOne, writes: inOne })
          }
        })
      )

      it.effect(`of ${variant.name}, with another answer behind it in the same write: that goes to nobody`, () =>
        accounted(variant, async (send) => {
          for (const stream of some(variant.stream)) {
            for (const framing of ["chunked", "length"] as const) {
              const splitting = { framing, extension: "", chunks: [40], writes: inOne }
              await send(stream, splitting, unasked)
              await send(stream, splitting)
            }
          }
        })
      )
    }
  })
})

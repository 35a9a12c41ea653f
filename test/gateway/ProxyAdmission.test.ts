import { assert, it, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { FullWindows } from "../../src/gateway/limits/FullWindows.ts"
import { neutral } from "../../src/policy/KeyPolicy.ts"
import * as LimitScopes from "../../src/state/limits/LimitScopes.ts"
import type { Meter } from "../../src/state/limits/Meters.ts"
import * as Proxy from "./Proxy.ts"
import { type RecordingWire, make as wireOf } from "./RecordingWire.ts"
import * as Upstream from "./ScriptedUpstream.ts"

/** A client that would have to be waited for, if its body were read. */
const stalling = (headers: ReadonlyArray<string>, target: string = Proxy.chat) =>
  ({ target, headers, body: "stalls" }) as const

const codeOf = ({ text }: RecordingWire): string => JSON.parse(text).error.code
const messageOf = ({ text }: RecordingWire): string => JSON.parse(text).error.message

layer(Proxy.database)("ProxyApp, before it reads a body,", (it) => {
  it.effect.each([
    [{ deny: true }, "deny"],
    [{ allowed_routes: ["/v1/embeddings"] }, "route"],
    [{ allowed_providers: ["compat"] }, "provider"],
    [{ allowed_hours_utc: [11] }, "hours"]
  ] as const)("refuses by what needs none of it: %j", ([policy, check]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey(policy)
      const wire = yield* gateway.ask(stalling(key.headers))
      assert.deepStrictEqual([wire.status, codeOf(wire)], [403, "policy_denied"])
      assert.notInclude(gateway.journal.join(), "the body stalls")
      assert.deepInclude((yield* gateway.records)[0], {
        status_code: 403,
        error_code: "policy_denied",
        denial: { check, layer: "key" }
      })
    })
  )

  it.effect("refuses what a full request window refuses, without asking Redis, until the window ends", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      for (const [policy, resetsInSeconds] of [
        [{ rpm_limit: 1 }, 60],
        [{ max_requests_per_day: 1 }, 12 * 3600]
      ] as const) {
        const key = yield* Proxy.issueKey(policy)
        const ask = (body: object | "stalls") => gateway.ask({ target: Proxy.chat, headers: key.headers, body })
        assert.strictEqual((yield* ask({})).status, 200)
        const refused = yield* ask({})
        assert.strictEqual(refused.status, 429)
        const asked = gateway.journal.filter((entry) => entry === "admission").length
        const stalled = yield* ask("stalls")
        assert.deepStrictEqual([stalled.status, codeOf(stalled)], [429, "rate_limit_exceeded"])
        assert.strictEqual(JSON.parse(stalled.text).error.retry_after_seconds, resetsInSeconds)
        assert.deepStrictEqual(
          [messageOf(stalled), stalled.received.filter((name) => name.startsWith("x-ratelimit"))],
          [messageOf(refused), refused.received.filter((name) => name.startsWith("x-ratelimit"))]
        )
        assert.strictEqual(gateway.journal.filter((entry) => entry === "admission").length, asked)
        if (resetsInSeconds > 60) continue
        yield* TestClock.adjust("60 seconds")
        assert.strictEqual((yield* ask({})).status, 200)
        yield* TestClock.setTime(Proxy.noon)
      }
    })
  )

  it.effect.each([
    ["is no JSON", "["],
    ["is larger than the key may send", { input: "x".repeat(200) }]
  ] as const)("counts a request whose body %s", ([, body]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey({ rpm_limit: 2, max_request_body_bytes: 100 })
      const ask = (body: string | object) => gateway.ask({ target: Proxy.chat, headers: key.headers, body })
      const refused = [(yield* ask(body)).status, (yield* ask(body)).status]
      assert.isTrue(
        refused.every((status) => status === 400 || status === 413),
        String(refused)
      )
      const third = yield* ask({})
      assert.deepStrictEqual([third.status, codeOf(third)], [429, "rate_limit_exceeded"])
    })
  )

  it.effect("counts a request by the wildcard whose body is refused, and reads none once the window is full", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Proxy.openWildcard() })
      const key = yield* Proxy.issueKey({ rpm_limit: 2 })
      const ask = (body: string | object) =>
        gateway.ask({ target: "/v1/batches", headers: [...key.headers, "transfer-encoding", "chunked"], body })
      assert.deepStrictEqual([(yield* ask("[")).status, (yield* ask("[")).status], [400, 400])
      assert.strictEqual((yield* ask({})).status, 429)
      // it would wait for the rest of the body
      const fourth = yield* ask("stalls")
      assert.deepStrictEqual([fourth.status, codeOf(fourth)], [429, "rate_limit_exceeded"])
    })
  )
})

it("a window is full for as long as its limit is what it was, at most some seconds, and the oldest are forgotten", () => {
  const windows = new FullWindows()
  let now = 0
  const clock = () => now
  const scope = LimitScopes.ofKey("k", neutral)
  const meter = (key: string, limit: number): Meter => ({
    scope,
    counted: "all",
    since: 0,
    field: "max_requests_per_day",
    unit: "requests",
    window: "day",
    limit,
    key,
    name: "rl:rpd",
    windowId: "20261120",
    endsAt: 0
  })
  const reading = { meter: meter("a", 5), used: 5 }
  windows.remember(reading, now)
  windows.remember({ meter: { ...meter("tokens", 5), unit: "tokens" }, used: 5 }, now)
  assert.deepStrictEqual(
    windows.findFull(() => [meter("b", 1), meter("a", 5)], clock),
    reading
  )
  assert.strictEqual(
    windows.findFull(() => [meter("a", 6), meter("tokens", 5)], clock),
    undefined
  )
  now = 5000
  assert.strictEqual(
    windows.findFull(() => [meter("a", 5)], clock),
    undefined
  )
  windows.remember(reading, now)
  for (let index = 0; index < 10_000; index++) windows.remember({ meter: meter(String(index), 1), used: 1 }, now)
  assert.strictEqual(
    windows.findFull(() => [meter("a", 5)], clock),
    undefined
  )
})

layer(Proxy.database)("ProxyApp gives", (it) => {
  /** So many requests of a key whose bodies do not come. */
  const occupying = (
    gateway: Effect.Success<ReturnType<typeof Proxy.make>>,
    headers: ReadonlyArray<string>,
    count: number
  ) =>
    Effect.gen(function* () {
      const before = gateway.journal.length
      const fibers = yield* Effect.forEach(Array.from({ length: count }), () =>
        Effect.forkChild(gateway.ask(stalling(headers)))
      )
      yield* Effect.repeat(Effect.yieldNow, {
        until: () => gateway.journal.slice(before).filter((entry) => entry === "the body stalls").length === count
      })
      return Fiber.interruptAll(fibers)
    })

  it.effect("a key a quarter of the bodies that it holds, and tells it whose room is full", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ settings: { maxBufferedRequests: 8 } })
      const [greedy, other] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      const leave = yield* occupying(gateway, greedy.headers, 2)
      const third = yield* gateway.ask(stalling(greedy.headers))
      assert.deepStrictEqual(
        [third.status, codeOf(third), third.header("retry-after")],
        [503, "gateway_overloaded", "1"]
      )
      assert.match(messageOf(third), /^This key, or this address, uses its whole share/)
      assert.strictEqual((yield* gateway.ask({ target: Proxy.chat, headers: other.headers, body: {} })).status, 200)
      yield* leave
      assert.strictEqual((yield* gateway.ask({ target: Proxy.chat, headers: greedy.headers, body: {} })).status, 200)
    })
  )

  it.effect("a key a quarter of their bytes, but for a body that is its only one", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ settings: { maxInflightBufferBytes: 1_000 } })
      const [greedy, other] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      const large = { user: "x".repeat(400) }
      const ask = (headers: ReadonlyArray<string>) => gateway.ask({ target: Proxy.chat, headers, body: large })
      const leave = yield* occupying(gateway, greedy.headers, 1)
      const refused = yield* ask(greedy.headers)
      assert.deepStrictEqual([refused.status, codeOf(refused)], [503, "gateway_overloaded"])
      assert.match(messageOf(refused), /share/)
      assert.strictEqual((yield* ask(other.headers)).status, 200)
      yield* leave
      assert.strictEqual((yield* ask(greedy.headers)).status, 200)
    })
  )

  it.effect("a key as many requests at once as its policy says, and says when the next may come", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.hangs() })
      const key = yield* Proxy.issueKey({ max_concurrent_requests: 2 })
      const other = yield* Proxy.issueKey({ max_concurrent_requests: 1 })
      const request = { target: Proxy.chat, headers: key.headers, body: {} }
      const running = yield* Effect.forkChild(gateway.ask(request))
      const uploading = yield* occupying(gateway, key.headers, 1)
      const third = yield* gateway.ask(stalling(key.headers))
      assert.deepStrictEqual(
        [third.status, codeOf(third), third.header("retry-after"), third.header("x-should-retry")],
        [429, "concurrency_limit_exceeded", "1", undefined]
      )
      assert.match(
        messageOf(third),
        /3 requests running at once; the limit max_concurrent_requests of its policy is 2\./
      )
      assert.deepInclude((yield* gateway.records)[0], {
        error_code: "concurrency_limit_exceeded",
        denial: { check: "concurrency", layer: "key" }
      })
      const otherRuns = yield* Effect.forkChild(gateway.ask({ ...request, headers: other.headers }))
      yield* Effect.repeat(Effect.yieldNow, { until: () => gateway.sent.length === 2 })
      yield* uploading
      const next = yield* Effect.forkChild(gateway.ask(request))
      yield* Effect.repeat(Effect.yieldNow, { until: () => gateway.sent.length === 3 })
      yield* Fiber.interruptAll([running, otherRuns, next])
    })
  )

  it.effect.each([
    ["a guarded answer", Proxy.chat, "POST", { guardrails: { mandatory_guardrails: ["pii-redact"] } }],
    ["a filtered list", "/v1/files", "GET", { project: true }]
  ] as const)("a request counts, with the memory of its answer, until the client has taken %s", (row) =>
    Effect.gen(function* () {
      const [, target, method, state] = row
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard(),
        upstream: Upstream.json({ data: [] }),
        settings: { maxBufferedRequests: 1 }
      })
      const key = yield* Proxy.issueKey({ max_concurrent_requests: 1 }, state)
      const other = yield* Proxy.issueKey({}, state)
      const request = (headers: ReadonlyArray<string>) => ({
        method,
        target,
        headers,
        body: method === "GET" ? "" : {}
      })
      const wire = wireOf({ ...request(key.headers), unread: true })
      const unread = yield* Effect.forkChild(gateway.handle(wire))
      yield* Effect.repeat(Effect.yieldNow, { until: () => wire.ending === "whole" })
      assert.lengthOf(yield* gateway.records, 1)
      const second = yield* gateway.ask(request(key.headers))
      assert.deepStrictEqual([second.status, codeOf(second)], [429, "concurrency_limit_exceeded"])
      const withoutRoom = yield* gateway.ask(request(other.headers))
      assert.deepStrictEqual([withoutRoom.status, codeOf(withoutRoom)], [503, "gateway_overloaded"])
      wire.takeRest()
      assert.strictEqual((yield* Fiber.join(unread)).status, 200)
      assert.strictEqual((yield* gateway.ask(request(key.headers))).status, 200)
    })
  )

  it.effect("the same number of requests to a key that takes the wildcard", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.hangs(), configured: Proxy.openWildcard() })
      const key = yield* Proxy.issueKey({ max_concurrent_requests: 1 })
      const request = { method: "GET", target: "/v1/files", headers: key.headers }
      const running = yield* Effect.forkChild(gateway.ask(request))
      yield* Effect.repeat(Effect.yieldNow, { until: () => gateway.sent.length === 1 })
      const second = yield* gateway.ask(request)
      assert.deepStrictEqual([second.status, codeOf(second)], [429, "concurrency_limit_exceeded"])
      yield* Fiber.interrupt(running)
    })
  )
})

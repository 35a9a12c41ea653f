import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../Eventually.ts"
import { chat, codeOf } from "../e2e/Calls.ts"
import * as Deployment from "../e2e/Deployment.ts"
import * as RawConnection from "../RawConnection.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { asking, available } from "./Subject.ts"

const setting = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>>) {
  const deployment = yield* Deployment.make({ environment })
  const gateway = yield* deployment.start()
  const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
  const buffered = Effect.promise(async () => {
    const page = await (await fetch(`${gateway.control}/admin-ui/metrics`)).text()
    return Number(/^gateway_buffered_requests (\d+)$/m.exec(page)?.[1] ?? 0)
  })
  return { buffered, gateway, key }
})

describe.skipIf(!available)("more request bodies than the process may hold", () => {
  it.live("by number: the next is refused at once with 503, and served when there is room", () =>
    Effect.gen(function* () {
      const { buffered, gateway, key } = yield* setting({ GATEWAY_MAX_BUFFERED_REQUESTS: "1" })
      const slow = yield* RawConnection.open(gateway.proxy)
      const body = asking("m")
      const headers = {
        authorization: `Bearer ${key.raw}`,
        "content-type": "application/json",
        "content-length": String(body.length)
      }
      slow.write(RawConnection.request("POST /v1/chat/completions", headers, body.slice(0, 10)))
      yield* eventually(buffered, (held) => held === 1)
      const refused = yield* chat(gateway, key.raw)
      assert.deepStrictEqual([refused.status, codeOf(refused)], [503, "gateway_overloaded"])
      assert.strictEqual(refused.headers.get("retry-after"), "1")
      slow.write(body.slice(10))
      yield* slow.until(/^HTTP\/1\.1 200 /)
      assert.strictEqual((yield* chat(gateway, key.raw)).status, 200)
    })
  )

  it.live("by their bytes likewise", () =>
    Effect.gen(function* () {
      const { buffered, gateway, key } = yield* setting({ GATEWAY_MAX_INFLIGHT_BUFFER_BYTES: "1000" })
      assert.strictEqual((yield* chat(gateway, key.raw)).status, 200)
      const refused = yield* chat(gateway, key.raw, { user: "x".repeat(1_000) })
      assert.deepStrictEqual([refused.status, codeOf(refused)], [503, "gateway_overloaded"])
      assert.strictEqual(yield* buffered, 0)
      assert.strictEqual((yield* chat(gateway, key.raw)).status, 200)
    })
  )
})

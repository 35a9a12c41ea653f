import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Ref } from "effect"
import { eventually } from "../Eventually.ts"
import * as NewerVersion from "../NewerVersion.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import { chat, codeOf } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

const readiness = ({ control }: RunningGateway.RunningGateway) =>
  Effect.promise(() =>
    fetch(`${control}/admin-ui/readyz`).then(async (response) => ({
      ok: response.ok,
      report: JSON.stringify(await response.json())
    }))
  )

describe.skipIf(!Deployment.available)("a rolling upgrade to a newer version", { timeout: 180_000 }, () => {
  it.live(
    "loses no request and no revocation, and the older version goes on beside a value that it does not know",
    () =>
      Effect.gen(function* () {
        const upstream = yield* SimulatorServer.serve()
        const deployment = yield* Deployment.make({
          environment: {
            UPSTREAM_BASE_URL: upstream.origin,
            UPSTREAM_SERVICE_KEY: "k",
            LOG_LEVEL: "warn",
            GATEWAY_DRAIN_DELAY_SECONDS: "1"
          }
        })
        const [control, older] = yield* Effect.all(
          [deployment.start({ role: "control" }), deployment.start({ role: "gateway" })],
          { concurrency: 2 }
        )
        const newKey = (by: RunningGateway.RunningGateway) => Effect.promise(() => RunningGateway.createKey(by))
        const steady = yield* newKey(control)
        const [changed, revoked] = [yield* newKey(control), yield* newKey(control)]

        // As a load balancer does, each request goes to a process that said that it is ready.
        const serving = yield* Ref.make(older)
        const statuses: Array<number> = []
        const load = yield* Ref.get(serving).pipe(
          Effect.flatMap((gateway) => chat(gateway, steady.raw)),
          Effect.tap(({ status }) => Effect.sync(() => statuses.push(status))),
          Effect.delay("10 millis"),
          Effect.forever,
          Effect.forkScoped
        )

        const root = yield* NewerVersion.make
        const newerControl = yield* deployment.start({ role: "control", root })
        control.signal("SIGTERM")
        assert.strictEqual(yield* Effect.promise(() => control.exited), 0)

        const policy = { unpriced_models: NewerVersion.newerValue }
        const layer = { kind: "team", scope_id: "newer", policy }
        yield* Effect.promise(() => newerControl.operate("PATCH", `/keys/${changed.id}`, { policy }))
        yield* eventually(chat(older, changed.raw), (answer) => codeOf(answer) === "control_state_unavailable")
        assert.include(older.output(), changed.id)
        yield* Effect.promise(() => newerControl.operate("POST", "/policy-layers", layer))
        yield* eventually(readiness(older), ({ report }) => report.includes('"configuration":"unreadable_rows"'))
        assert.isTrue((yield* readiness(older)).ok)
        assert.include(older.output(), "team:newer")

        assert.strictEqual((yield* chat(older, revoked.raw)).status, 200)
        const revokedAfter = Effect.fnUntraced(function* ({ id, raw }: typeof revoked) {
          yield* Effect.promise(() => newerControl.operate("POST", `/keys/${id}/revoke`))
          const since = yield* Clock.currentTimeMillis
          yield* eventually(chat(older, raw), (answer) => codeOf(answer) === "revoked_virtual_key")
          return (yield* Clock.currentTimeMillis) - since
        })
        yield* revokedAfter(revoked)
        // A key that the older version cannot read is revoked all the same.
        yield* revokedAfter(changed)

        const newer = yield* deployment.start({ role: "gateway", root })
        assert.isTrue((yield* readiness(newer)).ok)
        const known = yield* newKey(newerControl)
        yield* Effect.promise(() => newerControl.operate("PATCH", `/keys/${known.id}`, { policy }))
        yield* eventually(chat(older, known.raw), (answer) => codeOf(answer) === "control_state_unavailable")
        assert.strictEqual((yield* chat(newer, known.raw)).status, 200)

        yield* Ref.set(serving, newer)
        older.signal("SIGTERM")
        assert.strictEqual(yield* Effect.promise(() => older.exited), 0)
        const before = statuses.length
        yield* eventually(
          Effect.sync(() => statuses.length),
          (count) => count > before + 10
        )
        yield* Fiber.interrupt(load)
        assert.deepStrictEqual([...new Set(statuses)], [200])
        yield* deployment.recorded(steady.id, statuses.length)
      })
  )
})

import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as RunningGateway from "../RunningGateway.ts"

/** Two servers of one process once shared a router: what serves one of them made its routes the other's as well. */
describe("listeners of one process", () => {
  it.live("have routes of their own", () =>
    Effect.gen(function* () {
      const adminToken = RunningGateway.newAdminToken()
      const process = yield* GatewayOnPostgres.start({
        adminToken,
        environment: {
          SVC_STATUS_TOKEN: "a-token",
          GATEWAY_UPSTREAM_UI_BIND_ADDR: "127.0.0.1:0",
          SVC_PORTAL_BIND_ADDR: "127.0.0.1:0"
        },
        example: true
      })
      const asked = (origin: string, path: string, token = "a-token") =>
        Effect.promise(async () => {
          const answer = await fetch(origin + path, { headers: { authorization: `Bearer ${token}` } })
          await answer.arrayBuffer()
          return answer.status
        })
      assert.strictEqual(yield* asked(process.status, "/dlq/queues"), 200)
      assert.strictEqual(yield* asked(process.control, "/dlq/queues"), 404)
      assert.strictEqual(yield* asked(process.control, "/admin-ui/healthz"), 200)
      assert.strictEqual(yield* asked(process.status, "/admin-ui/healthz"), 404)
      assert.strictEqual(yield* asked(process.ui, "/admin-ui/healthz"), 404)
      assert.strictEqual(yield* asked(process.ui, "/dlq/queues"), 401)
      assert.strictEqual(yield* asked(process.control, "/admin-ui/session"), 401)
      for (const path of ["tasks", "queues", "workers", "dlq/messages", "dlq/replays"]) {
        assert.strictEqual(yield* asked(process.control, `/admin-ui/tasks/${path}`), 401)
        assert.strictEqual(yield* asked(process.control, `/admin-ui/tasks/${path}`, adminToken), 200, path)
      }
      const { raw } = yield* Effect.promise(() => RunningGateway.createKey(process))
      const portal = (path: string) => asked(process.portal, path, raw)
      assert.deepStrictEqual(
        yield* Effect.forEach(["v1/me", "v1/me/limits", "healthz", "readyz"], (path) => portal(`/admin-ui/${path}`)),
        [200, 200, 200, 200]
      )
      for (const path of [
        "",
        "admin/keys",
        "admin-ui/admin/keys",
        "admin-ui/docs",
        "admin-ui/openapi.json",
        "admin-ui/metrics",
        "admin-ui/admin/guardrails",
        "v1/models",
        "dlq/queues"
      ]) {
        assert.strictEqual(yield* portal(`/${path}`), 404, path)
      }
      assert.strictEqual(yield* asked(process.portal, "/admin-ui/v1/me"), 401)
    })
  )
})

import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Schema } from "effect"
import { eventually } from "../Eventually.ts"
import * as NewerRows from "../NewerRows.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import { call, chat, codeOf } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

const readiness = ({ control }: RunningGateway.RunningGateway) =>
  Effect.promise(() => fetch(`${control}/admin-ui/readyz`).then((response) => response.json()))

/** Tells every process that the configuration has changed, as a newer version would. */
const publish = (change: string) =>
  `WITH raised AS (UPDATE control_epoch SET epoch = epoch + 1 RETURNING epoch)
    SELECT pg_notify('svc_control_changes', '{"epoch":' || epoch || ',"change":{"_tag":"${change}"}}') FROM raised`

describe.skipIf(!Deployment.available)("beside a newer version", { timeout: 120_000 }, () => {
  it.live("processes of this one serve, revoke, start, and say that they are degraded", () =>
    Effect.gen(function* () {
      const upstream = yield* SimulatorServer.serve()
      const deployment = yield* Deployment.make({
        environment: { UPSTREAM_BASE_URL: upstream.origin, UPSTREAM_SERVICE_KEY: "k", LOG_LEVEL: "warn" }
      })
      const [all, gateway] = yield* Effect.all([deployment.start(), deployment.start({ role: "gateway" })], {
        concurrency: 2
      })
      const newKey = Effect.promise(() => RunningGateway.createKey(all))
      const degraded = (process: RunningGateway.RunningGateway) =>
        eventually(readiness(process), (report) => JSON.stringify(report).includes('"configuration":"unreadable_rows"'))

      const { id, raw } = yield* newKey
      assert.strictEqual((yield* chat(gateway, raw)).status, 200)
      const { provider, ...others } = NewerRows.statements
      const written = [NewerRows.unconstrained, ...Object.values(others), publish("Configuration")]
      yield* Effect.forEach(
        [...written, publish("OfANewerVersion"), `UPDATE api_keys SET policy = '{"max_things":3}' WHERE id = '${id}'`],
        (statement) => deployment.rows(Schema.Unknown, statement),
        { discard: true }
      )
      yield* Effect.forEach([all, gateway], degraded)
      for (const row of ["team:newer-field", "embeddings", "rerank", "newer", "newer-mode", "newer-window"]) {
        assert.include(gateway.output(), row)
      }
      const late = yield* deployment.start({ role: "gateway" })
      yield* degraded(late)

      for (const process of [gateway, late]) {
        // its own policy has a field of the newer version
        yield* eventually(chat(process, raw), (answer) => codeOf(answer) === "control_state_unavailable")
        const attempt = Effect.gen(function* () {
          const key = yield* newKey
          assert.strictEqual((yield* chat(process, key.raw)).status, 200)
          const embedded = yield* call(process, "/v1/embeddings", key.raw, { body: { model: "m", input: "one" } })
          assert.strictEqual(codeOf(embedded), "disabled_route")
          yield* Effect.promise(() => all.operate("POST", `/keys/${key.id}/revoke`))
          const revokedAt = yield* Clock.currentTimeMillis
          yield* eventually(chat(process, key.raw), (answer) => codeOf(answer) === "revoked_virtual_key")
          return (yield* Clock.currentTimeMillis) - revokedAt
        })
        // the machine that this runs on may be busy with something else, but hardly ten times
        const took = yield* Effect.repeat(attempt, { times: 9, until: (ms) => ms < 250 })
        assert.isBelow(Number(took), 250)
      }

      // nobody knows where requests should go: not to UPSTREAM_BASE_URL
      yield* Effect.forEach([provider, publish("Configuration")], (statement) =>
        deployment.rows(Schema.Unknown, statement)
      )
      const key = yield* newKey
      for (const process of [gateway, late]) {
        yield* eventually(chat(process, key.raw), (answer) => codeOf(answer) === "invalid_configuration")
      }
    })
  )

  it.live("the schema of a newer version is noticed at the start, and refused where it is incompatible", () =>
    Effect.gen(function* () {
      const deployment = yield* Deployment.make()
      const first = yield* deployment.start({ role: "gateway" })
      assert.notInclude(first.output(), "newer version")
      const migrated = (id: number, name: string) =>
        deployment.rows(Schema.Unknown, `INSERT INTO schema_migrations (migration_id, name) VALUES (${id}, '${name}')`)
      yield* migrated(9001, "more")
      const beside = yield* deployment.start({ role: "gateway" })
      assert.match(beside.output(), /^ {2}warning {3}The database schema is newer than this version \(9001_more\)/m)
      yield* migrated(9002, "incompatible_names")
      const { child, exited, output } = RunningGateway.launch({ role: "gateway", environment: deployment.environment })
      const code = yield* Effect.promise(() => exited).pipe(
        Effect.ensuring(Effect.sync(() => void child.kill("SIGKILL")))
      )
      assert.strictEqual(code, 78, output())
      assert.include(output(), "is incompatible with this one (9001_more, 9002_incompatible_names)")
    })
  )
})

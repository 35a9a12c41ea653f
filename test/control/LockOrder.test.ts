import { assert, describe, layer as describeWith } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { Database } from "../../src/services/Database.ts"
import { eventually } from "../Eventually.ts"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"
import * as Fixtures from "./Fixtures.ts"
import { admin, at, call, idOf, layer } from "./Listener.ts"

const waiting = Effect.flatMap(Database, ({ sql }) => sql`SELECT 1 FROM pg_locks WHERE NOT granted`)

const changes = {
  "a service": (project_id: string) =>
    Effect.map(Fixtures.service, (name) => ["PATCH", `${admin}/services/${name}`, { project_id }] as const),
  "an imported service": (project_id: string) =>
    Effect.succeed([
      "POST",
      `${admin}/services/import`,
      { studio_service_id: "s-1", name: "imported", project_id }
    ] as const),
  "a registry": (project_id: string) =>
    Effect.succeed([
      "POST",
      `${admin}/services/import/activate`,
      { services: [{ name: "activated", project_id }] }
    ] as const),
  "a key": (project_id: string) =>
    Effect.map(Fixtures.key, (id) => ["PATCH", `${admin}/keys/${id}`, { owner_type: "project", project_id }] as const)
}

describe.skipIf(TemporaryDatabase.server === null)("on a server", () => {
  describeWith(layer(TemporaryDatabase.layer), { excludeTestServices: true })("Locks", (it) => {
    it.effect.each(Object.entries(changes))(
      "%s that goes to a project and a document that is applied wait for each other in one order",
      ([, change]) =>
        Effect.gen(function* () {
          const { sql, transaction } = yield* Database
          const [method, path, body] = yield* change(yield* Fixtures.project)
          const held = yield* Deferred.make<void>()
          const goOn = yield* Deferred.make<void>()
          // as a document does: projects first, then what refers to them
          const document = yield* Effect.forkChild(
            transaction(
              Effect.gen(function* () {
                yield* sql`LOCK TABLE projects IN EXCLUSIVE MODE`
                yield* Deferred.succeed(held, undefined)
                yield* Deferred.await(goOn)
                // a deadlock is found after a second, and the loser tries again: the test would not see it
                return yield* Effect.exit(sql`LOCK TABLE api_keys, service_registrations IN EXCLUSIVE MODE NOWAIT`)
              })
            )
          )
          yield* Deferred.await(held)
          const answer = yield* Effect.forkChild(call(method, path, { body }))
          yield* eventually(waiting, (rows) => rows.length > 0)
          yield* Deferred.succeed(goOn, undefined)
          assert.isTrue(Exit.isSuccess(yield* Fiber.join(document)))
          assert.strictEqual((yield* Fiber.join(answer)).status, 200)
        })
    )

    it.effect("a bulk change leaves a key that somebody holds for later, and goes on with the others", () =>
      Effect.gen(function* () {
        const { sql, transaction } = yield* Database
        const ids = [yield* Fixtures.key, yield* Fixtures.key, yield* Fixtures.key]
        const held = yield* Deferred.make<void>()
        const goOn = yield* Deferred.make<void>()
        const holder = yield* Effect.forkChild(
          transaction(
            Effect.gen(function* () {
              yield* sql`SELECT 1 FROM api_keys WHERE id = ${ids[0]} FOR UPDATE`
              yield* Deferred.succeed(held, undefined)
              yield* Deferred.await(goOn)
            })
          )
        )
        yield* Deferred.await(held)
        const path = `${admin}/bulk-key-changes`
        const id = idOf((yield* call("POST", path, { body: { action: "disable", ids } })).json)
        const keys = Effect.map(call("GET", `${path}/${id}`), ({ json }) => at(json, "keys"))
        yield* eventually(keys, (now) => at(now, "changed") === 2)
        assert.deepInclude(yield* keys, { waiting: 1, failed: 0 })
        yield* Deferred.succeed(goOn, undefined)
        yield* Fiber.join(holder)
        yield* eventually(keys, (now) => at(now, "changed") === 3)
      })
    )
  })
})

import { type DateTime, Effect, Redacted } from "effect"
import type { HttpClient } from "effect/http"
import { expectTypeOf } from "vitest"
import {
  AllowList,
  ControlClient,
  type ControlError,
  type Key,
  Limit,
  type Project
} from "../../src/control/api/index.ts"

const connection = { baseUrl: "http://127.0.0.1:8081", token: Redacted.make("op_live_0") }

expectTypeOf(ControlClient.make(connection)).toEqualTypeOf<
  Effect.Effect<ControlClient.ControlClient, never, HttpClient.HttpClient>
>()

export const mistakes = [
  // @ts-expect-error: the token is redacted
  () => ControlClient.make({ ...connection, token: "op_live_0" }),
  // @ts-expect-error: no layer provides the HttpClient
  () => Effect.runPromise(ControlClient.make(connection))
]

export const calls = Effect.gen(function* () {
  const control = yield* ControlClient.make(connection)
  const project = yield* control.projects.create({ payload: { name: "search" } })
  expectTypeOf(project).toEqualTypeOf<Project>()
  const { key, raw_key } = yield* control.keys.create({
    payload: {
      project_id: project.id,
      policy: { daily_budget_usd: Limit.limited(3), allowed_models: AllowList.allow(["small"]) }
    }
  })
  expectTypeOf(key).toEqualTypeOf<Key>()
  expectTypeOf(key.created_at).toEqualTypeOf<DateTime.Utc>()
  expectTypeOf(raw_key).toEqualTypeOf<Redacted.Redacted>()

  // @ts-expect-error: there is no group project
  yield* control.project.list()
  // @ts-expect-error: a project needs a name
  yield* control.projects.create({ payload: {} })
  // @ts-expect-error: the field is called service_names
  yield* control.projects.update({ params: { id: project.id }, payload: { services: ["ocr"] } })
  // @ts-expect-error: the id of the project is missing
  yield* control.projects.get()
  // @ts-expect-error: a limit is made with Limit.limited
  yield* control.keys.create({ payload: { policy: { rpm_limit: 60 } } })
  // @ts-expect-error: a list is made with AllowList.allow
  yield* control.keys.create({ payload: { policy: { allowed_models: ["small"] } } })
  // @ts-expect-error: there is no preset admin
  yield* control.keys.create({ payload: { preset: "admin" } })
  // @ts-expect-error: the raw key is redacted
  yield* Effect.log(raw_key.length)

  const created = control.projects.create({ payload: { name: "search" } })
  // @ts-expect-error: the errors of the call are not handled
  const ignored: Effect.Effect<Project> = created
  const failed = yield* Effect.flip(created)
  if (failed._tag !== "ControlError") return ignored
  expectTypeOf(failed).toExtend<ControlError>()
  // @ts-expect-error: creating a project cannot fail because a project is missing
  if (failed.code === "missing_project") return ignored
  return created
})

import { Effect, Redacted } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { ControlApi, Limit } from "svc-runtime/control"

/** Creates a key in the project of this name, and creates the project unless it exists. */
export const onboard = Effect.fn(function* (baseUrl: string, token: string, name: string) {
  const control = yield* HttpApiClient.make(ControlApi, {
    baseUrl,
    transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(token))
  })
  const project = yield* control.projects.create({ payload: { name } }).pipe(
    Effect.catchIf(
      (error) => error._tag === "ControlError" && error.code === "duplicate_project",
      () =>
        Effect.map(control.projects.list({ query: { q: name } }), ({ body }) => body.find((one) => one.name === name))
    )
  )
  if (project === undefined) return yield* Effect.die(`${name} came and went`)
  const { key, raw_key } = yield* control.keys.create({
    payload: { project_id: project.id, preset: "developer", policy: { daily_budget_usd: Limit.limited(3) } }
  })
  return { prefix: key.key_prefix, key: Redacted.value(raw_key) }
}, Effect.provide(FetchHttpClient.layer))

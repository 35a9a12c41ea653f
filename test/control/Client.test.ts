import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { HttpClient, HttpClientRequest, HttpServer } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { ControlApi, ControlError } from "../../src/control/api/index.ts"
import { onboard } from "./ClientExample.ts"
import { operatorToken, suite } from "./Listener.ts"

const connect = HttpApiClient.make(ControlApi, {
  transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(operatorToken))
})

suite("A typed client of the same definition", (it) => {
  it.effect("reads objects, pages and refusals", () =>
    Effect.gen(function* () {
      const client = yield* connect
      const project = yield* client.projects.create({ payload: { name: "typed" } })
      assert.deepStrictEqual(yield* client.projects.get({ params: { id: project.id } }), { ...project, key_count: 0 })

      for (const _ of [1, 2]) yield* client.keys.create({ payload: { project_id: project.id } })
      const page = yield* client.keys.list({ query: { limit: 1 } })
      assert.lengthOf(page.body, 1)
      const cursor = page.headers["x-next-cursor"]
      assert(cursor !== undefined)
      const rest = yield* client.keys.list({ query: { limit: 1, cursor } })
      assert.notStrictEqual(rest.body[0]?.id, page.body[0]?.id)

      const refusal = yield* Effect.flip(client.projects.remove({ params: { id: project.id } }))
      assert.instanceOf(refusal, ControlError)
      assert.strictEqual(refusal instanceof ControlError && refusal.code, "project_in_use")
      assert.match(String(refusal instanceof ControlError && refusal.requestId), /^[0-9a-f-]{36}$/)
    })
  )
})

suite("The guide's example of a typed client", (it) => {
  it.effect("makes a project once, and a key for it each time", () =>
    Effect.gen(function* () {
      const { address } = yield* HttpServer.HttpServer
      assert(address._tag !== "UnixPathAddress")
      const baseUrl = `http://localhost:${address.port}`
      const made = yield* Effect.all([1, 2].map(() => onboard(baseUrl, operatorToken, "Nightly")))
      for (const { key, prefix } of made) assert.isTrue(key.startsWith(prefix))
      const projects = yield* Effect.flatMap(connect, (client) => client.projects.list({ query: {} }))
      assert.lengthOf(
        projects.body.filter(({ name }) => name === "Nightly"),
        1
      )
      const refused = yield* Effect.flip(onboard(baseUrl, "op_live_nobody", "Nightly"))
      assert.instanceOf(refused, ControlError)
    })
  )
})

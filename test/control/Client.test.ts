import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
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
      assert.deepStrictEqual(yield* client.projects.get({ params: { id: project.id } }), project)

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

suite("The README's example of a typed client", (it) => {
  it.effect("makes a project once, and a key for it each time", () =>
    Effect.gen(function* () {
      const { address } = yield* HttpServer.HttpServer
      assert(address._tag !== "UnixPathAddress")
      const baseUrl = `http://localhost:${address.port}`
      const made = yield* Effect.all([1, 2].map(() => onboard(baseUrl, operatorToken, "Nightly")))
      for (const { key, prefix } of made) assert.isTrue(key.startsWith(prefix))
      const projects = yield* Effect.flatMap(connect, (client) => client.projects.list())
      assert.lengthOf(
        projects.filter(({ name }) => name === "Nightly"),
        1
      )
      const refused = yield* Effect.flip(onboard(baseUrl, "op_live_nobody", "Nightly"))
      assert.instanceOf(refused, ControlError)
    })
  )
})

it("stands in the README as it is here", () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")
  const example = read("./ClientExample.ts").replace("../../src/", "./src/")
  assert.include(read("../../README.md"), `\`\`\`ts\n${example}\`\`\``)
})

it("needs nothing of Node: a browser can import it", () => {
  const seen = new Set<string>()
  const visit = (file: URL): void => {
    if (seen.has(file.pathname)) return
    seen.add(file.pathname)
    for (const [, from = ""] of readFileSync(file, "utf8").matchAll(/from "([^"]+)"/g)) {
      if (from.startsWith(".")) visit(new URL(from, file))
      else assert.match(from, /^effect(\/|$)/, file.pathname)
    }
  }
  visit(new URL("../../src/control/api/index.ts", import.meta.url))
  assert.isAbove(seen.size, 14)
})

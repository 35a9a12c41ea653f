import { assert, describe, layer as describeWith } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { HttpServer } from "effect/http"
import { Database } from "../../../src/services/Database.ts"
import { connect, type EventClient } from "../../status/EventClient.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import { admin, at, call, layer, ok, operatorToken, refusalOf } from "../Listener.ts"

const live = "/admin-ui/live"

const available = TemporaryDatabase.server !== null && TemporaryPrefix.server !== null

describe.skipIf(!available)("on servers", () => {
  describeWith(layer(TemporaryDatabase.layer, { redis: TemporaryPrefix.layer }), { excludeTestServices: true })(
    "GET /admin-ui/live",
    (it) => {
      it.effect("names what is wrong with the topics, and the scope that one needs", () =>
        Effect.gen(function* () {
          const unknown = yield* call("GET", `${live}?topics=requests,task`)
          assert.deepStrictEqual(refusalOf(unknown), { status: 422, code: "invalid_request", param: "topics" })
          assert.include(unknown.text, "requests, limits, configuration, tasks, dead_letters, queues, workers")
          const { value } = yield* token(["usage:read"])
          const refused = yield* call("GET", `${live}?topics=requests,configuration`, {
            authorization: `Bearer ${value}`
          })
          assert.deepStrictEqual(refusalOf(refused), {
            status: 403,
            code: "insufficient_operator_scope",
            param: "topics"
          })
          assert.match(refused.text, /configuration needs the scope audit:read/)
          assert.strictEqual((yield* call("POST", live)).status, 405)
          assert.strictEqual((yield* call("GET", `${live}?topic=requests`)).status, 422)
        })
      )

      it.effect("shows each change once, to those who may see it", () =>
        Effect.gen(function* () {
          const reader = yield* token(["usage:read", "tasks:read"])
          const [auditor, limited] = [yield* listen({ query: "?topics=configuration" }), yield* listen(reader)]
          yield* Effect.all([auditor.until(isReady), limited.until(isReady)], { concurrency: 2 })
          assert.deepStrictEqual(topicsOf(limited), [
            "requests",
            "limits",
            "tasks",
            "dead_letters",
            "queues",
            "workers"
          ])
          assert.include(auditor.headers["content-type"], "text/event-stream")
          yield* ok("POST", `${admin}/projects`, { body: { name: "shown live" } })
          yield* auditor.until((client) => changes(client).length === 1)
          auditor.hangUp()
          yield* ok("POST", `${admin}/projects`, { body: { name: "missed" } })
          const resumed = yield* listen({ query: "?topics=configuration", lastEventId: auditor.lastEventId ?? "" })
          yield* resumed.until((client) => changes(client).length > 0 && isReady(client))
          assert.deepStrictEqual(
            [...changes(auditor), ...changes(resumed)].map((change) => at(change, "action")),
            ["projects:create", "projects:create"]
          )
          assert.notInclude(limited.text, "projects:create")
          const lost = yield* listen({ query: "?topics=configuration&last_event_id=nonsense!" })
          yield* lost.until((client) => client.frames.some(({ event }) => event === "reset"))
        })
      )

      it.effect("ends within seconds when the token is revoked or rotated", () =>
        Effect.gen(function* () {
          const [revoked, rotated] = [yield* token(["usage:read"]), yield* token(["usage:read"])]
          const clients = [yield* listen(revoked), yield* listen(rotated)]
          for (const client of clients) yield* client.until(isReady)
          yield* ok("POST", `${admin}/operator-tokens/${revoked.id}/revoke`)
          yield* ok("POST", `${admin}/operator-tokens/${rotated.id}/rotate`)
          for (const client of clients) {
            yield* client.until(({ ended }) => ended)
            assert.strictEqual(client.frames.at(-1)?.event, "end")
          }
          assert.strictEqual((yield* call("GET", live, { authorization: `Bearer ${revoked.value}` })).status, 401)
        })
      )

      it.effect("ends with the session of a browser, which it does not extend", () =>
        Effect.gen(function* () {
          const { sql } = yield* Database
          const [signedOut, expired] = [yield* signIn, yield* signIn]
          const clients = [yield* listen({ page: signedOut }), yield* listen({ page: expired })]
          for (const client of clients) yield* client.until(isReady)
          yield* call("DELETE", session, { authorization: null, headers: signedOut })
          yield* sql`UPDATE operator_sessions SET used_at = now() - interval '5 minutes',
            expires_at = now() + interval '3 seconds'`
          for (const client of clients) {
            yield* client.until(({ ended }) => ended)
            assert.strictEqual(client.frames.at(-1)?.event, "end")
          }
        })
      )
    }
  )
})

const session = "/admin-ui/session"

/** The headers that a page sends after its operator has signed in. */
const signIn = Effect.gen(function* () {
  const { value } = yield* token(["usage:read"])
  const sameOrigin = { "sec-fetch-site": "same-origin" }
  const answer = yield* call("POST", session, { authorization: null, headers: sameOrigin, body: { token: value } })
  const cookie = String(answer.headers["set-cookie"]).split(";", 1)[0] ?? ""
  return { ...sameOrigin, cookie, "x-svc-csrf": String(at(answer.json, "csrf", "value")) }
})

interface Asked {
  readonly value?: string
  readonly query?: string
  readonly lastEventId?: string
  /** The headers of a page, in place of a token. */
  readonly page?: Readonly<Record<string, string>>
}

const listen = ({ lastEventId, page, query = "", value = operatorToken }: Asked) =>
  HttpServer.addressFormattedWith((address) =>
    connect(`${address}${live}${query}`, {
      ...(page ?? { authorization: `Bearer ${value}` }),
      ...(lastEventId !== undefined && { "last-event-id": lastEventId })
    })
  )

const isReady = ({ frames }: EventClient): boolean => frames.some(({ event }) => event === "ready")

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Json))

const dataOf = ({ frames }: EventClient, name: string) =>
  frames.flatMap(({ data, event }) => (event === name ? [decode(data)] : []))

const topicsOf = (client: EventClient) => at(dataOf(client, "ready")[0], "topics")

const changes = (client: EventClient): ReadonlyArray<Schema.Json> =>
  dataOf(client, "live").flatMap((data) => {
    const latest = at(data, "configuration", "changed", "latest")
    return Array.isArray(latest) ? latest : []
  })

let made = 0
const token = (scopes: ReadonlyArray<string>) =>
  Effect.map(ok("POST", `${admin}/operator-tokens`, { body: { name: `listener ${++made}`, scopes } }), (json) => ({
    id: String(at(json, "token", "id")),
    value: String(at(json, "raw_token"))
  }))

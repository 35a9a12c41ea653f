import { request } from "node:http"
import { assert, layer as describeWith } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServer } from "effect/http"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import { layer, operatorToken } from "../Listener.ts"

/** Signs in by the host name in `host`, with these headers and no other. */
const signIn = (headers: Readonly<Record<string, string>>) =>
  HttpServer.addressFormattedWith((address) =>
    Effect.callback<{ readonly status: number | undefined; readonly text: string }>((resume) => {
      const options = { method: "POST", agent: false, headers: { "content-type": "application/json", ...headers } }
      request(new URL("/admin-ui/session", address), options, (incoming) => {
        let text = ""
        incoming.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk
        })
        incoming.on("end", () => resume(Effect.succeed({ status: incoming.statusCode, text })))
      }).end(JSON.stringify({ token: operatorToken }))
    })
  )

describeWith(layer(EmbeddedDatabase.layer), { excludeTestServices: true })("Signing in from plain http", (it) => {
  it.effect("is refused with a sentence where browsers send no proof with a GET, and only there", () =>
    Effect.gen(function* () {
      const host = "10.1.2.3:8081"
      const refused = yield* signIn({ host, origin: `http://${host}` })
      assert.strictEqual(refused.status, 403)
      assert.include(refused.text, "insecure_origin")
      assert.include(refused.text, "need https, or localhost")
      for (const headers of [
        { host, origin: `https://${host}` },
        { host, origin: `http://${host}`, "sec-fetch-site": "same-origin" },
        { host: "localhost:8081", origin: "http://localhost:8081" },
        { host: "a.localhost:8081", origin: "http://a.localhost:8081" },
        { host }
      ]) {
        assert.strictEqual((yield* signIn(headers)).status, 200, JSON.stringify(headers))
      }
    })
  )
})

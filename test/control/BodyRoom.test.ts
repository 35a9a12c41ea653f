import { request } from "node:http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServer } from "effect/http"
import * as EmbeddedDatabase from "../EmbeddedDatabase.ts"
import { eventually } from "../Eventually.ts"
import * as Upstream from "../gateway/ScriptedUpstream.ts"
import { admin, layer as listener, operatorToken } from "./Listener.ts"

interface Post {
  readonly path: string
  readonly localAddress: string
  readonly length: number
  readonly token?: string
}

const requestOf = (address: string, { length, localAddress, path, token = operatorToken }: Post) =>
  request({
    host: "127.0.0.1",
    port: new URL(address).port,
    path,
    method: "POST",
    localAddress,
    agent: false,
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "content-length": length,
      expect: "100-continue"
    }
  })

/** A request whose body is waited for. It ends with the scope. */
const waited = (post: Post) =>
  HttpServer.addressFormattedWith((address) =>
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof requestOf>>((resume) => {
        const outgoing = requestOf(address, post)
          .on("error", (cause) => resume(Effect.die(cause)))
          .on("continue", () => resume(Effect.succeed(outgoing)))
          .on("response", ({ statusCode }) => resume(Effect.die(new Error(`It was answered with ${statusCode}`))))
        outgoing.flushHeaders()
      }),
      (outgoing) => Effect.sync(() => outgoing.destroy())
    )
  )

/** A status, and the code of a refusal. */
const answered = (post: Omit<Post, "length">, body = "{}", length = body.length) =>
  HttpServer.addressFormattedWith((address) =>
    Effect.callback<readonly [number | undefined, string | undefined]>((resume) => {
      const outgoing = requestOf(address, { ...post, length }).on("response", (incoming) => {
        let text = ""
        incoming.on("data", (chunk) => {
          text += chunk
        })
        incoming.on("end", () => {
          resume(Effect.succeed([incoming.statusCode, /"code":"(\w+)"/.exec(text)?.[1]]))
        })
      })
      outgoing.on("error", () => {}).write(body)
      return Effect.sync(() => outgoing.destroy())
    })
  )

const upstream = Upstream.layer(Upstream.json({}), [])

layer(listener(EmbeddedDatabase.layer, { upstream }), { excludeTestServices: true })("Bodies of requests", (it) => {
  it.effect("take a bounded sum of memory, and an address leaves room to others", () =>
    Effect.gen(function* () {
      const large = 16 * 1024 * 1024
      const plan = { path: `${admin}/configuration/plan`, length: large }
      const ui = { path: "/admin-ui/upstream-ui/x", length: large }
      const projects = { path: `${admin}/projects` }
      const one = { localAddress: "127.0.0.1" }
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* waited({ ...plan, ...one })
          assert.deepStrictEqual(yield* answered({ ...projects, ...one }), [503, "gateway_overloaded"])
          assert.deepStrictEqual(yield* answered({ ...ui, ...one }), [503, "gateway_overloaded"])
          assert.deepStrictEqual(yield* answered({ ...projects, localAddress: "127.0.0.2" }), [422, "invalid_request"])
          // four of them are all that there is
          yield* waited({ ...ui, localAddress: "127.0.0.2" })
          yield* waited({ ...plan, localAddress: "127.0.0.3" })
          yield* waited({ ...ui, localAddress: "127.0.0.4" })
          assert.deepStrictEqual(yield* answered({ ...projects, localAddress: "127.0.0.5" }), [
            503,
            "gateway_overloaded"
          ])
        })
      )
      // what is cut off gives its room back
      yield* eventually(answered({ ...projects, ...one }), ([status]) => status === 422)
    })
  )

  it.effect("are not waited for where nobody with a token sends them", () =>
    Effect.gen(function* () {
      const large = 16 * 1024 * 1024
      const stranger = { localAddress: "127.0.0.1", token: "op_live_nobody" }
      for (const path of [`${admin}/configuration/plan`, "/admin-ui/upstream-ui/x"]) {
        assert.strictEqual((yield* answered({ path, ...stranger }, "{", large))[0], 401, path)
      }
    })
  )
})

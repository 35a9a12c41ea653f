import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, Redacted, Stream } from "effect"
import { HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import * as RedisIoredis from "../../../layers/RedisIoredis.ts"
import { Redis } from "../../../src/services/Redis.ts"
import * as History from "../../../src/status/history/History.ts"
import * as StatusRoutes from "../../../src/status/http/StatusRoutes.ts"
import * as RedisStatusStore from "../../../src/status/store/RedisStatusStore.ts"
import * as EventStream from "../../../src/status/stream/EventStream.ts"

/**
 * A process of the bench's own: `node StreamsServer.ts REDIS_URL PREFIX`. It serves the status routes and, to be compared
 * with, what does nothing but answer; and prints its port.
 */

const [url = "", prefix = ""] = process.argv.slice(2)

const answered = (body: string) => HttpServerResponse.text(body, { contentType: "application/json" })

/** The answers that the bench has kept in Redis: asked for each time, and once. */
const answers = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const redis = yield* Redis
    const kept = (name: string) => Effect.orDie(redis.command("GET", redis.key(name)))
    const known = new Map<string, string>()
    yield* router.add(
      "GET",
      "/bare/:name",
      Effect.flatMap(HttpRouter.params, ({ name = "" }) => Effect.map(kept(name), (body) => answered(String(body))))
    )
    yield* router.add(
      "GET",
      "/silent/:name",
      Effect.flatMap(HttpRouter.params, ({ name = "" }) => {
        const body = known.get(name)
        if (body !== undefined) return Effect.succeed(answered(body))
        return Effect.map(kept(name), (body) => {
          known.set(name, String(body))
          return answered(String(body))
        })
      })
    )
  })
)

const bareStream = HttpServerResponse.stream(
  Stream.concat(Stream.make(Buffer.from("event: status\n\n")), Stream.never),
  { contentType: "text/event-stream" }
)

const announced = Layer.effectDiscard(
  Effect.map(HttpServer.HttpServer, ({ address }) => {
    if (address._tag !== "UnixPathAddress") process.stdout.write(`${address.port}\n`)
  })
)

const collected = Effect.sync(() => {
  globalThis.gc?.()
  return HttpServerResponse.empty()
})

const server = announced.pipe(
  Layer.provide(
    HttpRouter.serve(
      Layer.mergeAll(
        StatusRoutes.layer(),
        answers,
        HttpRouter.add("GET", "/bare-events/:task", bareStream),
        HttpRouter.add("GET", "/gc", collected)
      ),
      { routerConfig: StatusRoutes.routerConfig, disableLogger: true, disableListenLog: true }
    )
  ),
  Layer.provide(NodeHttpServer.layer(() => createServer({ keepAliveTimeout: 60_000 }), { host: "127.0.0.1", port: 0 })),
  Layer.provide([EventStream.layer(), History.layerStore()]),
  Layer.provide(RedisStatusStore.layer({ prefix: "bench" })),
  Layer.provide(RedisIoredis.layer({ url: Redacted.make(url), prefix }))
)

process.once("disconnect", () => process.exit())
Effect.runFork(Layer.launch(server))

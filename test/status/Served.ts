import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import type { SettingsError } from "../../src/messaging/envelope/Errors.ts"
import * as History from "../../src/status/history/History.ts"
import * as StatusRoutes from "../../src/status/http/StatusRoutes.ts"
import { StatusStore } from "../../src/status/store/StatusStore.ts"
import * as EventStream from "../../src/status/stream/EventStream.ts"

/** The status routes on a real socket, over the store at hand; answers where. */
export const served = Effect.fnUntraced(function* (
  streams: EventStream.Options = {},
  routes: StatusRoutes.Options = {},
  history: Layer.Layer<History.HistoryReader, SettingsError, StatusStore> = History.layerStore()
) {
  const store = yield* StatusStore
  const listener = HttpRouter.serve(StatusRoutes.layer(routes), {
    routerConfig: StatusRoutes.routerConfig,
    disableLogger: true,
    disableListenLog: true
  }).pipe(Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 })))
  const drained = EventStream.drainFirst.pipe(Layer.provideMerge(listener))
  const scope = yield* Effect.scope
  const own = yield* Scope.fork(scope)
  const context = yield* drained.pipe(
    Layer.provide([EventStream.layer(streams), history]),
    Layer.provide(Layer.succeed(StatusStore, store)),
    Layer.buildWithScope(own)
  )
  const { address } = Context.get(context, HttpServer.HttpServer)
  const port = address._tag === "UnixPathAddress" ? 0 : address.port
  return { url: `http://127.0.0.1:${port}`, close: Scope.close(own, Exit.void) }
})

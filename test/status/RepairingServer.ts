import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer, Logger, Option, Redacted } from "effect"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as RedisIoredis from "../../layers/RedisIoredis.ts"
import * as StatusRuntime from "../../src/graph/StatusRuntime.ts"
import { Broker } from "../../src/services/Broker.ts"
import { Redis } from "../../src/services/Redis.ts"
import * as DeadLetterRoutes from "../../src/status/http/DeadLetterRoutes.ts"
import { type Names, runtimeOf } from "./RepairedTasks.ts"

export interface Settings {
  readonly names: Names
  readonly rabbitmq: string
  readonly redis: string
  readonly prefix: string
}

/**
 * A status server in a process of its own: `RepairingServer.ts <settings as JSON>`. It writes its port. `POST /arm` says
 * before or after which step it kills itself: a script in Redis, a publish, or a read of a dead-letter queue.
 */
const settings: Settings = JSON.parse(process.argv[2] ?? "{}")

let crashAt = ""

const die = (point: string) => {
  if (crashAt !== point) return
  process.kill(process.pid, "SIGKILL")
  // The signal may arrive a moment later.
  for (;;);
}

const mortal = <A, E, R>(step: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    die(`before ${step}`)
    return Effect.tap(work, () => Effect.sync(() => die(`after ${step}`)))
  })

const broker = Layer.effect(
  Broker,
  Effect.map(Broker, (broker) =>
    Broker.of({
      ...broker,
      publish: (publication) => mortal("publish", broker.publish(publication)),
      channel: (options) =>
        Effect.map(broker.channel(options), (channel) => ({
          ...channel,
          get: (queue) =>
            Effect.tap(channel.get(queue), (found) =>
              Effect.sync(() => (Option.isSome(found) ? die("after get") : undefined))
            )
        }))
    })
  )
).pipe(Layer.provide(BrokerAmqp.layer({ url: Redacted.make(settings.rabbitmq) })))

const redis = Layer.effect(
  Redis,
  Effect.map(Redis, (redis) =>
    Redis.of({ ...redis, run: (script, keys, args) => mortal(script.name, redis.run(script, keys, args)) })
  )
).pipe(Layer.provide(RedisIoredis.layer({ url: Redacted.make(settings.redis), prefix: settings.prefix })))

const arm = HttpRouter.add(
  "POST",
  "/arm",
  Effect.gen(function* () {
    crashAt = yield* (yield* HttpServerRequest.HttpServerRequest).text
    return HttpServerResponse.empty()
  })
)

const announce = Layer.effectDiscard(
  Effect.map(HttpServer.HttpServer, ({ address }) => {
    process.stdout.write(`${"port" in address ? address.port : 0}\n`)
  })
)

const server = announce.pipe(
  Layer.provide(
    HttpRouter.serve(Layer.merge(DeadLetterRoutes.layer(), arm), { disableLogger: true, disableListenLog: true })
  ),
  Layer.provide(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 })),
  Layer.provide(StatusRuntime.layer(runtimeOf(settings.names)))
)

Layer.launch(server.pipe(Layer.provide([broker, redis]), Layer.provide(Logger.layer([])))).pipe(
  NodeRuntime.runMain({ disableErrorReporting: true })
)

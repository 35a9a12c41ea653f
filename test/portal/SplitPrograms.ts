import { Effect, type Scope } from "effect"
import { Broker } from "../../src/services/Broker.ts"
import * as Lists from "../bench/Lists.ts"
import * as Store from "../bench/Store.ts"
import { rowsOf } from "../bench/Usage.ts"
import * as Deployment from "../e2e/Deployment.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as RunningGateway from "../RunningGateway.ts"

/** Without the three servers, no role can be a process of its own. */
export const available = Deployment.available && RunningBroker.server !== null

interface Options {
  readonly adminToken: string
  /** The module of the tasks, `ShopTasks.ts`. */
  readonly tasks: string
}

const usageRows = 1_000_000
const usageDays = 30

/**
 * Every role as a process of its own, on PostgreSQL, Redis and RabbitMQ, with what a large installation has: keys, dead
 * letters and tasks by the hundred thousand. The portal is that of the role `control`.
 */
export const start = Effect.fnUntraced(function* ({ adminToken, tasks }: Options) {
  const shop = RunningBroker.name("shop")
  yield* removed(shop)
  const store = yield* Effect.orDie(Store.make)
  const process = (role: Role): Start =>
    RunningGateway.start({
      role,
      adminToken,
      environment: {
        DATABASE_URL: store.databaseUrl,
        REDIS_URL: store.redisUrl,
        REDIS_KEY_PREFIX: store.redisPrefix,
        RABBITMQ_URL: RunningBroker.server ?? "",
        SHOP_TASKS: shop
      },
      ...(role !== "gateway" && { tasks })
    })
  const gateway = yield* process("gateway")
  yield* Effect.orDie(fill(store, gateway.proxy))
  const [control] = yield* Effect.all([process("control"), process("status"), process("messaging")])
  return { ...control, proxy: gateway.proxy }
})

type Role = RunningGateway.Options["role"] & string
type Start = Effect.Effect<RunningGateway.RunningGateway, never, Scope.Scope>

const fill = Effect.fnUntraced(function* (store: Store.Store, proxy: string) {
  yield* Lists.fill(store, proxy, () => {})
  const lengthMs = usageDays * 86_400_000
  yield* store.run(rowsOf(0, usageRows, Date.now() - lengthMs, lengthMs / usageRows))
  yield* store.run("VACUUM (ANALYZE) usage_events")
})

/** Everything of this name goes with the scope. */
const removed = (shop: string) =>
  Effect.addFinalizer(() =>
    Effect.flatMap(Broker, ({ remove }) =>
      remove({
        queues: ["status", "mails", "mails.dlq", "mails.retry.200ms.quorum", "mails.retry.200ms"].map(
          (queue) => `${shop}.${queue}`
        ),
        exchanges: ["status", "tasks"].map((exchange) => `${shop}.${exchange}`)
      })
    ).pipe(Effect.provide(RunningBroker.layer()), Effect.ignore)
  )

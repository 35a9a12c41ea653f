import { randomBytes } from "node:crypto"
import { Effect, Redacted, Schema, type Scope } from "effect"
import { Redis as Ioredis } from "ioredis"
import * as RedisProcess from "../RedisProcess.ts"
import type * as RunningGateway from "../RunningGateway.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import * as Deployment from "./Deployment.ts"
import * as OtlpCollector from "./OtlpCollector.ts"

/** A secret that can be told from any other text. */
const canary = (name: string): string => `canary-${name}-${randomBytes(12).toString("hex")}`

/** What only operators and the gateway's environment know. */
export const makeOwnSecrets = () => ({
  serviceKey: canary("service-key"),
  compatKey: canary("compat-key"),
  workerToken: canary("worker-token"),
  encryptionKey: randomBytes(32).toString("base64"),
  databasePassword: canary("database-password"),
  redisPassword: canary("redis-password"),
  ofProvider: canary("of-provider"),
  ofProject: canary("of-project"),
  ofKey: canary("of-key")
})
export type OwnSecrets = ReturnType<typeof makeOwnSecrets>

/** What a client sends besides its key and should not. Nothing of it goes any further. */
export const makeForgedHeaders = () => ({
  "x-api-key": canary("x-api-key"),
  "x-aih-api-key": canary("x-aih-api-key"),
  "x-upstream-api-key": canary("x-upstream-api-key"),
  "x-upstream-key": canary("x-upstream-key"),
  "proxy-authorization": `Basic ${canary("proxy-authorization")}`,
  "x-trusted-gateway-identity": canary("trusted-identity"),
  "x-trusted-gateway-signature": canary("trusted-signature"),
  "x-svc-key": canary("x-svc-key"),
  "x-svc-worker-token": canary("forged-worker-token"),
  "x-svc-key-id": canary("forged-key-id"),
  "x-svc-project-id": canary("forged-project-id"),
  "x-svc-task-id": canary("forged-task-id"),
  "x-svc-run-id": canary("forged-run-id"),
  "x-svc-request-id": canary("forged-request-id"),
  "x-svc-service": canary("forged-service"),
  "x-model-key": canary("custom-credential-header")
})

/** A gateway full of secrets, and every place where one of them could come out. */
export interface Guarded {
  readonly gateway: RunningGateway.RunningGateway
  readonly deployment: Deployment.Deployment
  readonly own: OwnSecrets
  readonly upstream: SimulatorServer.SimulatorServer
  readonly compat: SimulatorServer.SimulatorServer
  readonly collector: OtlpCollector.OtlpCollector
  /** Every command that Redis got, as its MONITOR tells. */
  readonly redisCommands: () => string
}

export const make = Effect.fnUntraced(function* (): Effect.fn.Return<Guarded, never, Scope.Scope> {
  const own = makeOwnSecrets()
  const redis = yield* Effect.orDie(RedisProcess.make("--requirepass", own.redisPassword))
  const redisUrl = `redis://:${own.redisPassword}@127.0.0.1:${redis.port}`
  const redisCommands = yield* monitored(redisUrl)
  const collector = yield* OtlpCollector.make
  const upstream = yield* SimulatorServer.serve({ recorded: 10_000 })
  const compat = yield* SimulatorServer.serve()
  const deployment = yield* Deployment.make({
    redis: Redacted.make(redisUrl),
    databaseFor: (url) => Effect.succeed(withPassword(Redacted.value(url), own.databasePassword)),
    environment: {
      LOG_LEVEL: "trace",
      UPSTREAM_BASE_URL: upstream.origin,
      UPSTREAM_SERVICE_KEY: own.serviceKey,
      DIRECT_COMPAT_BASE_URL: compat.origin,
      DIRECT_COMPAT_SERVICE_KEY: own.compatKey,
      SVC_WORKER_TOKEN: own.workerToken,
      GATEWAY_ENCRYPTION_KEY: own.encryptionKey,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint
    }
  })
  const gateway = yield* deployment.start()
  return { gateway, deployment, own, upstream, compat, collector, redisCommands }
})

/** The server trusts whoever comes from here, and takes any password. */
const withPassword = (url: string, password: string): string => {
  const to = new URL(url)
  to.password = password
  return to.href
}

const monitored = (url: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const lines: Array<string> = []
        const monitor = await new Ioredis(url).monitor()
        monitor.on("monitor", (_time: string, args: ReadonlyArray<string>) => lines.push(args.join(" ")))
        return { lines, monitor }
      }),
      ({ monitor }) => Effect.sync(() => monitor.disconnect())
    ),
    ({ lines }) =>
      () =>
        lines.join("\n")
  )

/** Every row of every table, as text. */
export const everyRow = ({ rows }: Deployment.Deployment) =>
  Effect.gen(function* () {
    const tables = yield* rows(
      Schema.Struct({ name: Schema.String }),
      "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public'"
    )
    const all = yield* Effect.forEach(tables, ({ name }) =>
      rows(Schema.Struct({ row: Schema.String }), `SELECT '${name} ' || t::text AS row FROM ${name} t`)
    )
    return all.flat().map(({ row }) => row)
  })

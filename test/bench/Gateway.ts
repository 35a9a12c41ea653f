import { randomBytes } from "node:crypto"
import { Effect, Option, Schema } from "effect"
import { BenchFailed, type Child, freePort, ready, start } from "./Child.ts"
import { models } from "./Scenario.ts"
import * as Store from "./Store.ts"

/** This gateway as its users start it: from its sources, on a real PostgreSQL, a real Redis and the mock upstream. */
export interface Gateway {
  readonly child: Child
  readonly origin: string
  readonly store: Store.Store
  /** Makes a key with these policies and answers it raw. */
  readonly key: (policy: object, guardrailPolicy?: object) => Effect.Effect<string, BenchFailed>
  readonly setPrices: Effect.Effect<void, BenchFailed>
  /** What the control API answers to a GET. */
  readonly read: (path: string) => Effect.Effect<string, BenchFailed>
  /** The sum over all labels of a counter at `/metrics`. */
  readonly metric: (name: string) => Effect.Effect<number, BenchFailed>
}

/** `folder` is the checkout whose program it is, by default this one. */
export const make = Effect.fnUntraced(function* (
  name: string,
  upstream: string,
  nodeFlags: ReadonlyArray<string>,
  folder?: string
) {
  const installation = yield* makeInstallation(upstream)
  const { child, control, origin } = yield* startProcess(name, installation, ["all"], nodeFlags, folder)
  const gateway: Gateway = { child, origin, store: installation.store, ...callsOf(name, control, installation.token) }
  return gateway
})

/** What the processes of one installation share. */
export interface Installation {
  readonly store: Store.Store
  readonly token: string
  readonly upstream: string
}

export const makeInstallation = (upstream: string) =>
  Effect.map(Store.make, (store): Installation => {
    const token = `op_live_${randomBytes(32).toString("hex")}`
    return { store, token, upstream }
  })

/** Starts a role with its flags, and waits until it is ready. */
export const startProcess = Effect.fnUntraced(function* (
  name: string,
  { store, token, upstream }: Installation,
  args: ReadonlyArray<string>,
  nodeFlags: ReadonlyArray<string> = [],
  folder?: string
) {
  const port = yield* freePort
  const controlPort = yield* freePort
  const child = yield* start({
    name,
    args: [...nodeFlags, ...asUsersStartIt, ...args],
    ...(folder !== undefined && { folder }),
    env: {
      DATABASE_URL: store.databaseUrl,
      REDIS_URL: store.redisUrl,
      REDIS_KEY_PREFIX: store.redisPrefix,
      UPSTREAM_BASE_URL: upstream,
      UPSTREAM_SERVICE_KEY: "sk-bench-upstream",
      GATEWAY_ADMIN_TOKEN: token,
      GATEWAY_BIND_ADDR: `127.0.0.1:${port}`,
      GATEWAY_CONTROL_BIND_ADDR: `127.0.0.1:${controlPort}`,
      SVC_STATUS_BIND_ADDR: "127.0.0.1:0",
      GATEWAY_DRAIN_SECONDS: "2",
      LOG_LEVEL: "info"
    }
  })
  const control = `http://127.0.0.1:${controlPort}/admin-ui`
  yield* ready(child, `${control}/readyz`)
  return { child, control, origin: `http://127.0.0.1:${port}` }
})

/** Calls of the control API at an address. */
export const callsOf = (
  name: string,
  control: string,
  token: string
): Pick<Gateway, "key" | "setPrices" | "read" | "metric"> => {
  const send = (method: string, path: string, body?: object) =>
    Effect.tryPromise({
      try: async () => {
        const answer = await fetch(control + path, {
          method,
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) })
        })
        const text = await answer.text()
        if (!answer.ok) throw new Error(`${answer.status} ${text}`)
        return text
      },
      catch: (cause) => new BenchFailed({ message: `${name}: ${method} ${path}: ${String(cause)}` })
    })
  return {
    key: (policy, guardrailPolicy = {}) =>
      send("POST", "/admin/keys", { owner_type: "individual", policy, guardrail_policy: guardrailPolicy }).pipe(
        Effect.flatMap((text) => decodeMinted(text)),
        Effect.map(({ raw_key }) => raw_key),
        Effect.catchTag("SchemaError", ({ message }) => Effect.fail(new BenchFailed({ message })))
      ),
    setPrices: Effect.forEach(
      Object.values(models),
      (model) =>
        send("PUT", `/admin/model-prices/${model}`, { input_usd_per_million: 0.15, output_usd_per_million: 0.6 }),
      { discard: true }
    ),
    read: (path) => send("GET", path),
    metric: (metric) =>
      Effect.flatMap(send("GET", "/metrics"), (text) =>
        Option.match(readMetric(text, metric), {
          onNone: () => Effect.fail(new BenchFailed({ message: `/admin-ui/metrics has no ${metric}` })),
          onSome: Effect.succeed
        })
      )
  }
}

/** `npm start`, but for npm. */
const asUsersStartIt = ["--max-semi-space-size=64", "src/main.ts"]

const decodeMinted = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Struct({ raw_key: Schema.String })))

const readMetric = (text: string, name: string): Option.Option<number> => {
  const values = text.split("\n").flatMap((line) => {
    const [, metric, value] = /^([^{ ]+)(?:\{.*\})? (\S+)/.exec(line) ?? []
    return metric === name ? [Number(value)] : []
  })
  return values.length === 0 ? Option.none() : Option.some(values.reduce((sum, value) => sum + value, 0))
}

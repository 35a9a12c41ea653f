import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import { promisify } from "node:util"
import { Effect, Redacted, Schema } from "effect"
import { request } from "undici"
import * as BrokerAmqp from "../../../layers/BrokerAmqp.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { unlinkKeys } from "../../UnlinkKeys.ts"
import { BenchFailed, type Child, start } from "../Child.ts"
import { familyCpuMicros, listener } from "../Footprint.ts"
import { installed } from "../Installed.ts"
import * as Store from "../Store.ts"
import { Done, environment, type Kind, kinds, placesOf, type Work } from "./Work.ts"

export const names = ["bare", "alike", "own", "bullmq", "rascal", "celery"] as const
export type Name = (typeof names)[number]

export interface Contender {
  readonly name: Name
  readonly child: Child
  readonly work: (work: Work) => Effect.Effect<Done, BenchFailed>
  /** Processor time so far, µs: of its own processes, and of the servers that it works with. */
  readonly cpu: () => { readonly own: number; readonly servers: number }
}

interface Description {
  readonly title: string
  readonly includes: string
  readonly kinds: ReadonlyArray<Kind>
  /** How many publishes may be unanswered. */
  readonly windows: ReadonlyArray<Window>
  readonly waits: boolean
  readonly servers: ReadonlyArray<"rabbitmq" | "redis">
}

export const windows = [1, 256, 500] as const
export type Window = (typeof windows)[number]

export const descriptions: Readonly<Record<Name, Description>> = {
  bare: {
    title: "bare amqplib",
    includes:
      "a confirm channel, the same bytes every time, no headers; `JSON.parse` and an acknowledgement for each message. " +
      "In a round trip, the statuses by hand",
    kinds,
    windows,
    waits: true,
    servers: ["rabbitmq"]
  },
  alike: {
    title: "amqplib, same message",
    includes:
      "as bare amqplib, and each message is one of its own that says what the contract has a task say: an id, the header " +
      "`task_id`, a correlation id, `mandatory`",
    kinds,
    windows,
    waits: false,
    servers: ["rabbitmq"]
  },
  own: {
    title: "this library",
    includes:
      "`BrokerClient` and `TaskConsumer`: schema, ids, headers, `mandatory`, deadlines, recovery; a fiber for each " +
      "publisher and each task",
    kinds,
    windows,
    waits: true,
    servers: ["rabbitmq"]
  },
  bullmq: {
    title: "BullMQ 6.7.0",
    includes: "from npm; its queue is in Redis, which here keeps nothing on disk",
    kinds: ["classic"],
    windows: [1, 256],
    waits: true,
    servers: ["redis"]
  },
  rascal: {
    title: "Rascal 21.0.1",
    includes: "from npm, with its defaults for production; it knows no statuses",
    kinds: ["classic"],
    windows: [1, 256],
    waits: false,
    servers: ["rabbitmq"]
  },
  celery: {
    title: "Celery",
    includes:
      "from Debian, two prefork processes, late acknowledgements, confirmed publishes, statuses and results in Redis; " +
      "it publishes one after the other",
    kinds: ["classic"],
    windows: [1],
    waits: true,
    servers: ["rabbitmq", "redis"]
  }
}

const peers = "test/bench/messaging/peers"

const programs: Readonly<Record<Exclude<Name, "celery">, string>> = {
  bare: "test/bench/messaging/BareAmqplib.ts",
  alike: "test/bench/messaging/BareAmqplib.ts",
  own: "test/bench/messaging/OwnLibrary.ts",
  bullmq: `${peers}/bullmq.mjs`,
  rascal: `${peers}/rascal.mjs`
}

/** Where the contenders work, and what is removed with the scope, whatever becomes of them. */
export const ground = Effect.gen(function* () {
  const prefix = `{svc-bench-${randomBytes(6).toString("hex")}}:`
  const broker = yield* Broker
  const { version } = yield* Effect.mapError(broker.server, ({ message }) => new BenchFailed({ message }))
  const redis = yield* Store.redis
  const contenderPrefix = (name: Name) => `${prefix}${name}:`
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      Effect.ignore(broker.remove(declaredBy(names.map(contenderPrefix)))),
      Effect.promise(() => unlinkKeys(redis, prefix))
    )
  )
  return { version, contenderPrefix, redis }
})
export type Ground = Effect.Success<typeof ground>

export const broker = BrokerAmqp.layer({ url: Redacted.make(environment.rabbitmq), name: "svc-bench" })

const declaredBy = (prefixes: ReadonlyArray<string>) => {
  const places = prefixes.flatMap((prefix) => kinds.map((kind) => placesOf(prefix, kind)))
  return {
    queues: [...places.flatMap(({ queue, statusQueue }) => [queue, statusQueue]), ...prefixes.map((p) => `${p}idle`)],
    exchanges: [
      ...places.flatMap(({ exchange, statusExchange }) => [exchange, statusExchange]),
      ...prefixes.flatMap((p) => [`${p}celery`, `${p}control.pidbox`, `reply.${p}control.pidbox`])
    ]
  }
}

const portOf = (url: string, otherwise: number): number => Number(new URL(url).port || otherwise)

const ports = { rabbitmq: portOf(environment.rabbitmq, 5_672), redis: portOf(environment.redis, 6_379) }

export const make = Effect.fnUntraced(function* (name: Name, ground: Ground, nodeFlags: ReadonlyArray<string>) {
  const env = {
    RABBITMQ_URL: environment.rabbitmq,
    REDIS_URL: environment.redis,
    BENCH_PREFIX: ground.contenderPrefix(name),
    BENCH_MESSAGE: name === "alike" ? "alike" : "same"
  }
  if (name === "bullmq" || name === "rascal") yield* installed(peers, `${peers}/node_modules/${name}/package.json`)
  const child =
    name === "celery"
      ? yield* celery(ground, env)
      : yield* start({ name, args: [...(name === "own" ? nodeFlags : []), programs[name]], env })
  const origin = `http://127.0.0.1:${yield* child.port}`
  const servers = descriptions[name].servers.map((server) => listener(ports[server]))
  const contender: Contender = {
    name,
    child,
    work: (work) =>
      Effect.tryPromise({
        try: async () => {
          // not by `fetch`, which waits no longer than five minutes
          const { body, statusCode } = await request(origin, {
            method: "POST",
            body: JSON.stringify(work),
            headersTimeout: 0
          })
          const text = await body.text()
          if (statusCode !== 200) throw new Error(text)
          return text
        },
        catch: (cause) =>
          new BenchFailed({ message: `${name}: ${work._tag}: ${String(cause)}. It wrote:\n${child.lastWords()}` })
      }).pipe(
        Effect.flatMap((text) => decodeDone(text)),
        Effect.catchTag("SchemaError", ({ message }) => Effect.fail(new BenchFailed({ message })))
      ),
    cpu: () => ({
      own: familyCpuMicros(child.pid),
      servers: servers.map((pid) => (pid === undefined ? Number.NaN : familyCpuMicros(pid))).reduce((a, b) => a + b, 0)
    })
  }
  return contender
})

const decodeDone = Schema.decodeUnknownEffect(Schema.fromJsonString(Done))

/** Debian's, which is not on the path of every `python3`. */
const python = "/usr/bin/python3"

/** Why it is left out, where it is. */
export const absence = (name: Name): Effect.Effect<string | undefined> =>
  name !== "celery"
    ? Effect.succeed(undefined)
    : Effect.tryPromise(() => promisify(execFile)(python, ["-c", "import celery, redis"])).pipe(
        Effect.match({
          onFailure: () => "Celery is not here (Debian: apt-get install celery python3-redis)",
          onSuccess: () => undefined
        })
      )

const celery = Effect.fnUntraced(function* ({ redis }: Ground, env: Readonly<Record<string, string>>) {
  const url = new URL(environment.redis)
  url.pathname = `/${yield* Effect.promise(() => emptyDatabase(redis))}`
  return yield* start({
    name: "celery",
    command: python,
    args: [`${peers}/celery_contender.py`],
    env: { ...env, CELERY_RESULTS: url.href, PYTHONWARNINGS: "ignore", PYTHONDONTWRITEBYTECODE: "1" }
  })
})

/** It counts its results by the size of their database, which therefore must be its own. */
const emptyDatabase = async (redis: Ground["redis"]): Promise<number> => {
  const counts = await redis.info("keyspace")
  const used = new Set([...counts.matchAll(/^db(\d+):/gm)].map(([, database]) => Number(database)))
  for (let database = 15; database > 0; database--) if (!used.has(database)) return database
  throw new Error("Redis has no empty database for Celery's results")
}

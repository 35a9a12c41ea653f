import { Effect } from "effect"
import { Redis, RedisError } from "../../src/services/Redis.ts"
import type { Failures, WorkerProcess } from "./WorkerProcess.ts"

const failuresOf = (operation: RedisError["operation"]): Failures<never, RedisError> => {
  const failWith = (message: string) =>
    Effect.suspend(() => Effect.fail(new RedisError({ operation, retryable: true, cause: new Error(message) })))
  return {
    before: failWith("Redis is unreachable (a fault of the test kit)"),
    after: failWith("Redis did not reply in time (a fault of the test kit)")
  }
}

/** The Redis of a worker. Commands and scripts are operations of the run. */
export const make = (redis: Redis["Service"], worker: WorkerProcess): Redis["Service"] =>
  Redis.of({
    key: redis.key,
    command: (name, ...args) => {
      const label = `the Redis command ${[name, ...args.slice(0, 1)].join(" ")}`
      return worker.perform("redis", label, redis.command(name, ...args), failuresOf("command"))
    },
    run: (script, keys, args) =>
      worker.perform(
        "redis",
        `the Redis script ${script.name} on ${keys.join(", ")}`,
        redis.run(script, keys, args),
        failuresOf("script")
      ),
    subscribe: (channel) => worker.alive(redis.subscribe(channel)),
    ping: worker.alive(redis.ping)
  })

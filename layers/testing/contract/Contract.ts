import { Effect, type Layer, ManagedRuntime } from "effect"
import { lawDeadlineSeconds, type Suite } from "./law/Law.ts"

export { type Law, LawBroken, law, type Suite } from "./law/Law.ts"

/** Functions of a test framework, such as those of Vitest and Jest. With `node:test`, `afterAll` is its `after`. */
export interface TestRunner {
  readonly describe: (name: string, define: () => void) => unknown
  readonly it: (name: string, run: () => Promise<void>, timeoutMs?: number) => unknown
  readonly afterAll: (run: () => Promise<void>) => unknown
}

/** An implementation of a door. All laws share one instance of the layer, which the first law builds. */
export interface Variant<R, E> {
  readonly name: string
  readonly layer: Layer.Layer<R, E>
}

/**
 * Registers a test for each law of a door.
 *
 * ```ts
 * import { after, describe, it } from "node:test"
 *
 * Contract.register(RedisContract.suite, { name: "mine", layer: MyRedis.layer }, { describe, it, afterAll: after })
 * ```
 */
export const register = <R, E>(suite: Suite<R>, variant: Variant<R, E>, runner: TestRunner): void => {
  runner.describe(`${suite.door}: ${variant.name}`, () => {
    const runtime = ManagedRuntime.make(variant.layer)
    runner.afterAll(() => runtime.dispose())
    for (const { check, name } of suite.laws) {
      // Test frameworks print the difference of a failed assertion only if it is the error itself.
      const test = Effect.catchTag(check, "LawBroken", ({ cause }) => Effect.die(cause))
      runner.it(name, () => runtime.runPromise(test), timeoutMs)
    }
  })
}

/** The law ends first, so its message says more than that of the test framework. */
const timeoutMs = (lawDeadlineSeconds + 30) * 1_000

import { assert } from "@effect/vitest"
import { Effect } from "effect"
import * as Fixtures from "./Fixtures.ts"
import { admin, at, call, ok, refusalOf, suite } from "./Listener.ts"

const nobody = "00000000-0000-4000-8000-000000000000"

const model = Effect.as(
  ok("PUT", `${admin}/model-prices/some%2Fmodel`, { body: { input_usd_per_million: 1, output_usd_per_million: 2 } }),
  "some/model"
)

const cases = [
  ["policy-layers", Fixtures.policyLayer, "id", "not_found", nobody],
  ["providers/upstream-credentials", Fixtures.mapping, "id", "missing_provider_config", nobody],
  ["guardrails", Fixtures.guardrail, "name", "not_found", "nothing"],
  ["model-prices", model, "model", "not_found", "nothing"]
] as const

suite("One of a list", (it) => {
  it.effect.each(cases)(
    "%s: is what the list says of it, and 404 where there is none",
    ([path, make, name, code, no]) =>
      Effect.gen(function* () {
        const id = yield* make
        const list = yield* ok("GET", `${admin}/${path}`)
        const all = at(list, "guardrails") ?? list
        assert(Array.isArray(all))
        const listed = all.find((one) => at(one, name) === id)
        assert.isDefined(listed)
        assert.deepStrictEqual(yield* ok("GET", `${admin}/${path}/${encodeURIComponent(id)}`), listed)
        const missing = yield* call("GET", `${admin}/${path}/${no}`)
        assert.deepStrictEqual(refusalOf(missing), { status: 404, code, param: null })
      })
  )
})

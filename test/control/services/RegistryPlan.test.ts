import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import * as fc from "fast-check"
import type { Registration, RegistryEntry } from "../../../src/control/api/services/ServiceImportApi.ts"
import type { Service } from "../../../src/control/api/services/ServicesApi.ts"
import * as RegistryPlan from "../../../src/control/services/RegistryPlan.ts"

const time = DateTime.makeUnsafe(0)

/** The row that a registration becomes. */
const service = (registration: Registration): Service => ({
  ...registration,
  credential_configured: false,
  missing_runtime_fields:
    registration.upstream_base_url === null ? ["upstream_base_url", "credential"] : ["credential"],
  last_synced_at: null,
  disabled_at: null,
  created_at: time,
  updated_at: time
})

const byName = (registrations: ReadonlyArray<Registration>) =>
  registrations.toSorted((a, b) => (a.name < b.name ? -1 : 1))

const noProjects = new Set<string>()
const planned = (registry: ReadonlyArray<Service>, entries: ReadonlyArray<RegistryEntry>) =>
  RegistryPlan.ofEntries(registry, entries, noProjects)
const done = ({ steps }: RegistryPlan.Plan) => steps.map(({ after }) => service(after))
/** The registry that `entries` make where there was none, if they can. */
const registryOf = (entries: ReadonlyArray<RegistryEntry>) => {
  const plan = planned([], entries)
  fc.pre(plan.diff.invalid.length === 0)
  return done(plan)
}
const nothing = { added: [], changed: [], removed: [], changed_fields: {}, invalid: [] }

const entry = fc.record(
  {
    timeout_ms: fc.constantFrom(1, 2, null),
    upstream_base_url: fc.constantFrom("http://a:1", "http://b:2/", null),
    enabled: fc.boolean(),
    pricing_rules: fc.constantFrom(null, [{ path: "/x", equals: true, cost_mode: "none" as const }]),
    studio_service_id: fc.constantFrom("s1", "s2", null)
  },
  { requiredKeys: [] }
)
const entries = fc.uniqueArray(
  fc.tuple(fc.constantFrom("a", "b", "c", "d"), entry).map(([name, fields]): RegistryEntry => ({ ...fields, name })),
  { selector: ({ name }) => name }
)

describe("a plan", () => {
  it("once done leaves nothing to do", () => {
    fc.assert(
      fc.property(entries, entries, (first, second) => {
        const registry = registryOf(first)
        const plan = planned(registry, second)
        if (plan.diff.invalid.length > 0) return
        assert.deepStrictEqual(planned(done(plan), second).diff, nothing)
      })
    )
  })

  it("accounts for every service: what is not named is removed, and stays disabled", () => {
    fc.assert(
      fc.property(entries, entries, (first, second) => {
        const registry = registryOf(first)
        const plan = planned(registry, second)
        if (plan.diff.invalid.length > 0) return
        const names = new Set(second.map(({ name }) => name))
        for (const after of done(plan)) {
          if (!names.has(after.name)) assert.deepStrictEqual([after.enabled, after.sync_status], [false, "stale"])
        }
        for (const { name } of registry)
          assert.include(
            plan.steps.map(({ before }) => before?.name),
            name
          )
      })
    )
  })

  it("of a snapshot brings the registry back to it", () => {
    fc.assert(
      fc.property(entries, entries, (first, second) => {
        const then = registryOf(first)
        const moved = planned(then, second)
        if (moved.diff.invalid.length > 0) return
        const snapshot = then.map(RegistryPlan.registrationOf)
        const back = RegistryPlan.ofSnapshot(done(moved), snapshot, noProjects)
        const kept = new Set(snapshot.map(({ name }) => name))
        assert.deepStrictEqual(
          byName(back.steps.map(({ after }) => after).filter(({ name }) => kept.has(name))),
          byName(snapshot)
        )
        const befores = back.steps.flatMap(({ before }) => before ?? [])
        assert.lengthOf(new Set(befores), befores.length, "every service takes one step")
        assert.deepStrictEqual(RegistryPlan.ofSnapshot(then, snapshot, noProjects).diff, nothing)
      })
    )
  })

  it("leaves what an operator decided about an imported service alone, whatever the import says", () => {
    fc.assert(
      fc.property(entry, entry, (first, again) => {
        const [imported] = done(planned([], [{ ...first, name: "a", studio_service_id: "s" }]))
        assert(imported !== undefined)
        const after = RegistryPlan.toRegistration({ ...again, name: "a", studio_service_id: "s" }, imported)
        assert.deepStrictEqual({ ...after, sync_status: imported.sync_status }, RegistryPlan.registrationOf(imported))
      })
    )
  })
})

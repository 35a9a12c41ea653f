import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import * as fc from "fast-check"
import { plannedChange, type StoredChange } from "../../../src/control/keys/bulk/PlannedChange.ts"
import type { KeyRow } from "../../../src/control/keys/KeyRows.ts"

const now = DateTime.makeUnsafe(0)

const key = (parts: Partial<KeyRow>): KeyRow => ({
  id: "00000000-0000-4000-8000-000000000001",
  name: null,
  description: null,
  owner_email: null,
  tags: [],
  owner_type: "individual",
  project_id: null,
  service_names: [],
  team_id: null,
  key_prefix: "rk_live_00000000",
  disabled: false,
  revoked_at: null,
  expires_at: null,
  rotation_due_at: null,
  previous_key_expires_at: null,
  last_used_at: null,
  holder_rotation: false,
  policy: {},
  policy_version: 1,
  guardrail_policy: {},
  created_at: now,
  updated_at: now,
  ...parts
})

/** The key after the change, and what an undo needs to know. */
const changedBy = (change: StoredChange, row: KeyRow, before: Parameters<typeof plannedChange>[2] = null) => {
  const plan = plannedChange(change, row, before)
  if (plan.kind === "switch") return { row: { ...row, disabled: plan.disabled }, before: plan.before }
  if (plan.kind !== "patch") return { row, before: null }
  const { owner_type = row.owner_type, project_id = row.project_id, tags, service_names } = plan.patch
  const kept = owner_type === "project" ? [] : row.service_names
  return {
    row: { ...row, owner_type, project_id, tags: tags ?? row.tags, service_names: service_names ?? kept },
    before: plan.before
  }
}

const tags = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"))
const places = fc.oneof(
  fc.record({ owner_type: fc.constant("individual" as const), project_id: fc.constant(null), service_names: tags }),
  fc.record({
    owner_type: fc.constant("project" as const),
    project_id: fc.constantFrom("p1", "p2"),
    service_names: fc.constant([])
  })
)
const rows = fc
  .tuple(tags, places, fc.boolean())
  .map(([some, place, disabled]) => key({ ...place, disabled, tags: some }))
const changes: fc.Arbitrary<StoredChange> = fc.oneof(
  fc.constantFrom({ action: "disable" } as const, { action: "enable" } as const),
  fc.record({ action: fc.constant("tag" as const), add_tags: tags, remove_tags: tags }),
  fc.record({ action: fc.constant("move" as const), project_id: fc.constantFrom("p1", "p2") })
)

const comparable = ({ tags: some, ...row }: KeyRow) => ({ ...row, tags: some.toSorted() })

describe("a change of many keys", () => {
  it("is undone by what it has noted of each key", () => {
    fc.assert(
      fc.property(rows, changes, (row, change) => {
        const changed = changedBy(change, row)
        const undone = changedBy({ action: "undo" }, changed.row, changed.before)
        assert.deepStrictEqual(comparable(undone.row), comparable(row))
      })
    )
  })

  it("changes nothing the second time", () => {
    fc.assert(
      fc.property(rows, changes, (row, change) => {
        assert.strictEqual(plannedChange(change, changedBy(change, row).row, null).kind, "unchanged")
      })
    )
  })

  it("leaves a revoked key as it is", () => {
    fc.assert(
      fc.property(rows, changes, (row, change) => {
        assert.strictEqual(plannedChange(change, { ...row, revoked_at: now }, null).kind, "unchanged")
      })
    )
  })
})

import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import * as fc from "fast-check"
import { plannedChange, projectsOf, type StoredChange, scopesOf } from "../../../src/control/keys/bulk/PlannedChange.ts"
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
const changedBy = (change: StoredChange, row: KeyRow, restore: Parameters<typeof plannedChange>[2] = null) => {
  const plan = plannedChange(change, row, restore)
  if (plan.kind === "switch") return { row: { ...row, disabled: plan.disabled }, replaced: plan.replaced }
  if (plan.kind !== "patch") return { row, replaced: null }
  const { owner_type = row.owner_type, project_id = row.project_id, tags, service_names } = plan.patch
  const kept = owner_type === "project" ? [] : row.service_names
  return {
    row: { ...row, owner_type, project_id, tags: tags ?? row.tags, service_names: service_names ?? kept },
    replaced: plan.replaced
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
        const undone = changedBy(
          { action: "undo", of: change.action === "undo" ? change.of : change.action },
          changed.row,
          changed.replaced
        )
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

  it("that was undone leaves alone a key that somebody has moved on since", () => {
    const from = { owner_type: "individual", project_id: null } as const
    const to = { owner_type: "project", project_id: "p1" } as const
    const undo = { action: "undo", of: "move" } as const
    const restore = { from, to, service_names: ["a"] }
    assert.strictEqual(plannedChange(undo, key({ owner_type: "project", project_id: "p2" }), restore).kind, "unchanged")
    assert.deepInclude(plannedChange(undo, key(to), restore), { patch: { ...from, service_names: ["a"] } })
  })

  it("locks the projects to which it moves keys, in one order", () => {
    const to = { owner_type: "project", project_id: "p3" } as const
    const restores = ["p2", null, "p1", "p2"].map((project_id) => ({
      from: { owner_type: project_id === null ? ("individual" as const) : ("project" as const), project_id },
      to,
      service_names: []
    }))
    assert.deepStrictEqual(projectsOf({ action: "undo", of: "move" }, [null, ...restores]), ["p1", "p2"])
    assert.deepStrictEqual(projectsOf({ action: "move", project_id: "p9" }, [null]), ["p9"])
    assert.deepStrictEqual(projectsOf({ action: "undo", of: "disable" }, [{ disabled: false }]), [])
  })

  it("needs the scopes of what it takes back, however often that was taken back", () => {
    assert.deepStrictEqual(scopesOf({ action: "undo", of: "disable" }), ["keys:disable"])
    assert.deepStrictEqual(scopesOf({ action: "undo", of: "move" }), ["policies:update", "keys:create"])
  })
})

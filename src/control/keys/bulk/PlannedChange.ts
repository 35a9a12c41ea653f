import { Schema } from "effect"
import { BulkActionName } from "../../api/keys/BulkKeyChangesApi.ts"
import { type KeyPatch, OwnerType } from "../../api/keys/KeysApi.ts"
import { maxTags } from "../../api/schema/Labels.ts"
import type { Scope } from "../../api/schema/Security.ts"
import type { KeyRow } from "../KeyRows.ts"

const Texts = Schema.Array(Schema.String)

/** A bulk change as it is stored. An undo of an undo names, as `of`, the action that was undone first. */
export const StoredChange = Schema.Union([
  Schema.Struct({ action: Schema.Literals(["disable", "enable"]) }),
  Schema.Struct({ action: Schema.Literal("tag"), add_tags: Texts, remove_tags: Texts }),
  Schema.Struct({ action: Schema.Literal("move"), project_id: Schema.String }),
  Schema.Struct({ action: Schema.Literal("undo"), of: BulkActionName })
])
export type StoredChange = typeof StoredChange.Type

/** The scopes that a change needs. An undo needs those of the change that it takes back. */
export const scopesOf = (change: StoredChange): ReadonlyArray<Scope> =>
  scopesOfAction[change.action === "undo" ? change.of : change.action]

const scopesOfAction: Readonly<Record<typeof BulkActionName.Type, ReadonlyArray<Scope>>> = {
  disable: ["keys:disable"],
  enable: ["keys:disable"],
  tag: ["policies:update"],
  move: ["policies:update", "keys:create"]
}

const Owner = Schema.Struct({ owner_type: OwnerType, project_id: Schema.NullOr(Schema.String) })
type Owner = typeof Owner.Type

/** The values that a change has replaced in one key. An undo restores them where the key is still as the change left it. */
export const Replaced = Schema.Union([
  Schema.Struct({ disabled: Schema.Boolean }),
  Schema.Struct({ added_tags: Texts, removed_tags: Texts }),
  Schema.Struct({ from: Owner, to: Owner, service_names: Texts })
])
export type Replaced = typeof Replaced.Type

export type PlannedChange =
  | { readonly kind: "unchanged" }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "switch"; readonly disabled: boolean; readonly replaced: Replaced }
  | { readonly kind: "patch"; readonly patch: KeyPatch; readonly replaced: Replaced }

const unchanged: PlannedChange = { kind: "unchanged" }

/** Decides what a change does to a key. `restore` is what an undo sets back. */
export const plannedChange = (change: StoredChange, key: KeyRow, restore: Replaced | null): PlannedChange => {
  if (key.revoked_at !== null) return unchanged
  switch (change.action) {
    case "disable":
    case "enable":
      return switched(key, change.action === "disable")
    case "tag":
      return tagged(key, change.add_tags, change.remove_tags)
    case "move":
      return moved(key, { owner_type: "project", project_id: change.project_id }, undefined)
    case "undo":
      return restore === null ? unchanged : restored(key, restore)
  }
}

const switched = (key: KeyRow, disabled: boolean): PlannedChange =>
  key.disabled === disabled ? unchanged : { kind: "switch", disabled, replaced: { disabled: key.disabled } }

const tagged = ({ tags: now }: KeyRow, add: ReadonlyArray<string>, remove: ReadonlyArray<string>): PlannedChange => {
  const added_tags = add.filter((tag) => !now.includes(tag))
  const removed_tags = now.filter((tag) => remove.includes(tag) && !add.includes(tag))
  if (added_tags.length + removed_tags.length === 0) return unchanged
  const tags = [...now.filter((tag) => !removed_tags.includes(tag)), ...added_tags]
  return tags.length > maxTags
    ? { kind: "failed", message: `It would have ${tags.length} tags. A key has at most ${maxTags}.` }
    : { kind: "patch", patch: { tags }, replaced: { added_tags, removed_tags } }
}

const isSameOwner = (one: Owner, other: Owner): boolean =>
  one.owner_type === other.owner_type && one.project_id === other.project_id

/** A key that moves to a project loses its own list of services, which an undo brings back. */
const moved = (key: KeyRow, to: Owner, services: ReadonlyArray<string> | undefined): PlannedChange => {
  const { owner_type, project_id, service_names } = key
  const from = { owner_type, project_id }
  if (isSameOwner(from, to)) return unchanged
  const hasOwnServices = to.owner_type === "individual" && services !== undefined
  const patch = { ...to, ...(hasOwnServices && { service_names: services }) }
  return { kind: "patch", patch, replaced: { from, to, service_names } }
}

const restored = (key: KeyRow, restore: Replaced): PlannedChange => {
  if ("disabled" in restore) return switched(key, restore.disabled)
  if ("added_tags" in restore) return tagged(key, restore.removed_tags, restore.added_tags)
  return isSameOwner(key, restore.to) ? moved(key, restore.from, restore.service_names) : unchanged
}

/** The projects to which a change moves keys. */
export const projectsOf = (change: StoredChange, restores: ReadonlyArray<Replaced | null>): ReadonlyArray<string> => {
  if (change.action === "move") return [change.project_id]
  const ids = restores.flatMap((restore) => (restore !== null && "from" in restore ? [restore.from.project_id] : []))
  return [...new Set(ids)].filter((id) => id !== null).sort()
}

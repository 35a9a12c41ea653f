import { Schema } from "effect"
import { type KeyPatch, OwnerType } from "../../api/keys/KeysApi.ts"
import { maxTags } from "../../api/schema/Labels.ts"
import type { KeyRow } from "../KeyRows.ts"

const Texts = Schema.Array(Schema.String)

/** What a bulk change does to each of its keys, as it is stored. */
export const StoredChange = Schema.Union([
  Schema.Struct({ action: Schema.Literals(["disable", "enable", "undo"]) }),
  Schema.Struct({ action: Schema.Literal("tag"), add_tags: Texts, remove_tags: Texts }),
  Schema.Struct({ action: Schema.Literal("move"), project_id: Schema.String })
])
export type StoredChange = typeof StoredChange.Type

/** What a bulk change has replaced in a key, for an undo. Tags that others add or remove meanwhile stay as they are. */
export const Before = Schema.Struct({
  disabled: Schema.optionalKey(Schema.Boolean),
  added_tags: Schema.optionalKey(Texts),
  removed_tags: Schema.optionalKey(Texts),
  owner_type: Schema.optionalKey(OwnerType),
  project_id: Schema.optionalKey(Schema.NullOr(Schema.String)),
  service_names: Schema.optionalKey(Texts)
})
export type Before = typeof Before.Type

export type PlannedChange =
  | { readonly kind: "unchanged" }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "switch"; readonly disabled: boolean; readonly before: Before }
  | { readonly kind: "patch"; readonly patch: KeyPatch; readonly before: Before }

const unchanged: PlannedChange = { kind: "unchanged" }

/** Decides what a change does to a key. `before` is what an undo sets back. */
export const plannedChange = (change: StoredChange, key: KeyRow, before: Before | null): PlannedChange => {
  if (key.revoked_at !== null) return unchanged
  switch (change.action) {
    case "disable":
    case "enable":
      return switched(key, change.action === "disable")
    case "tag":
      return tagged(key, change.add_tags, change.remove_tags)
    case "move":
      return moved(key, { owner_type: "project", project_id: change.project_id })
    case "undo":
      return undone(key, before ?? {})
  }
}

const switched = (key: KeyRow, disabled: boolean): PlannedChange =>
  key.disabled === disabled ? unchanged : { kind: "switch", disabled, before: { disabled: key.disabled } }

const tagged = ({ tags: now }: KeyRow, add: ReadonlyArray<string>, remove: ReadonlyArray<string>): PlannedChange => {
  const added_tags = add.filter((tag) => !now.includes(tag))
  const removed_tags = now.filter((tag) => remove.includes(tag) && !add.includes(tag))
  if (added_tags.length + removed_tags.length === 0) return unchanged
  const tags = [...now.filter((tag) => !removed_tags.includes(tag)), ...added_tags]
  return tags.length > maxTags
    ? { kind: "failed", message: `It would have ${tags.length} tags. A key has at most ${maxTags}.` }
    : { kind: "patch", patch: { tags }, before: { added_tags, removed_tags } }
}

type Place = Pick<Before, "owner_type" | "project_id" | "service_names">

/** A key that moves to a project loses its own list of services, which an undo brings back. */
const moved = ({ owner_type, project_id, service_names }: KeyRow, to: Place): PlannedChange =>
  to.owner_type === owner_type && to.project_id === project_id
    ? unchanged
    : { kind: "patch", patch: { ...to }, before: { owner_type, project_id, service_names } }

const undone = (key: KeyRow, before: Before): PlannedChange => {
  const { added_tags, disabled, owner_type, project_id, removed_tags, service_names } = before
  if (disabled !== undefined) return switched(key, disabled)
  if (added_tags !== undefined) return tagged(key, removed_tags ?? [], added_tags)
  if (owner_type === undefined || project_id === undefined) return unchanged
  const hasOwnServices = owner_type === "individual" && service_names !== undefined
  return moved(key, { owner_type, project_id, ...(hasOwnServices && { service_names }) })
}

import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import { Cursor, Id, NextCursor, PageLimit, Timestamp } from "../schema/Fields.ts"
import { maxTags, Tag } from "../schema/Labels.ts"
import { operation, skipsUnreadable } from "../schema/Security.ts"
import { keyFilters } from "./KeysApi.ts"

export const maxKeys = 100_000
export const maxKeyIds = 5_000

const Tags = Schema.Array(Tag).check(Schema.isMaxLength(maxTags), Schema.isUnique())

/** Some of the filters of `GET keys`. Without any, all keys match. */
export const KeyFilter = Schema.Struct(keyFilters)
export type KeyFilter = typeof KeyFilter.Type

export const BulkActionName = Schema.Literals(["disable", "enable", "tag", "move"])

/** A change has the keys with these `ids`, or those that match the `filter` now. A key that matches later is not changed. */
const selection = {
  ids: Schema.optionalKey(Schema.Array(Id).check(Schema.isBetweenLength(1, maxKeyIds), Schema.isUnique())),
  filter: Schema.optionalKey(KeyFilter),
  expected_selected: Schema.optionalKey(Schema.Int).annotate({
    description:
      "How many keys the filter selected as you read it. If it selects another number by now, nothing changes, and the response is 409 `changed_since_read`."
  })
}

export const NewBulkKeyChange = Schema.Struct({
  action: BulkActionName,
  ...selection,
  /** Only the action `tag` adds and removes tags. */
  add_tags: Schema.optionalKey(Tags),
  remove_tags: Schema.optionalKey(Tags),
  /** The action `move` moves the keys to this project. */
  project_id: Schema.optionalKey(Id)
})
export type NewBulkKeyChange = typeof NewBulkKeyChange.Type

const BulkKeyChangeState = Schema.Literals(["running", "done", "stopped"])

const Outcomes = Schema.Struct({
  selected: Schema.Int,
  waiting: Schema.Int,
  changed: Schema.Int,
  /** The key was so already, or is revoked. */
  unchanged: Schema.Int,
  failed: Schema.Int
})

export const BulkKeyChange = Schema.Struct({
  id: Id,
  created_at: Timestamp,
  /** `undo` sets back what the change `undoes` has changed. */
  action: Schema.Literals([...BulkActionName.literals, "undo"]),
  add_tags: Schema.Array(Schema.String),
  remove_tags: Schema.Array(Schema.String),
  project_id: Schema.NullOr(Id),
  /** `null` where the keys were listed by their ids. An undo has that of the change that it undoes. */
  filter: Schema.NullOr(KeyFilter),
  undoes: Schema.NullOr(Id),
  /** The latest change that undoes this one. */
  undone_by: Schema.NullOr(Id),
  state: BulkKeyChangeState,
  /** Why it ended before the last key. */
  stop_reason: Schema.NullOr(Schema.String),
  ended_at: Schema.NullOr(Timestamp),
  /** The operator token on whose behalf the keys are changed. */
  token_id: Schema.NullOr(Id),
  keys: Outcomes
}).annotate({ identifier: "BulkKeyChange" })
export type BulkKeyChange = typeof BulkKeyChange.Type

export const maxFailures = 100

const BulkKeyFailure = Schema.Struct({
  key_id: Id,
  key_name: Schema.NullOr(Schema.String),
  key_prefix: Schema.NullOr(Schema.String),
  message: Schema.String
})
export type BulkKeyFailure = typeof BulkKeyFailure.Type

/** With the first 100 keys that could not be changed. */
export const BulkKeyChangeWithFailures = BulkKeyChange.pipe(
  Schema.fieldsAssign({ failures: Schema.Array(BulkKeyFailure) })
).annotate({ identifier: "BulkKeyChangeWithFailures" })
export type BulkKeyChangeWithFailures = typeof BulkKeyChangeWithFailures.Type

const params = { id: Id }

export const BulkKeyChangesApi = HttpApiGroup.make("bulk-key-changes")
  .annotate(OpenApi.Description, "Changes of many keys at once, which go on by themselves.")
  .add(
    HttpApiEndpoint.post("create", "/", {
      payload: NewBulkKeyChange,
      success: BulkKeyChange,
      error: refusals("invalid_bulk_key_change", "missing_project", "too_many_bulk_key_changes", "changed_since_read")
    })
      .annotateMerge(operation("Change many keys", "keys:disable", "policies:update"))
      .annotate(
        OpenApi.Description,
        `Selects up to ${maxKeys} keys, and changes one after the other. Each has an audit event of its own, and the change goes on after a restart. \`disable\` and \`enable\` require the scope \`keys:disable\`, \`tag\` requires \`policies:update\`, and \`move\` also \`keys:create\`. Changes are kept for 30 days.`
      )
      .annotateMerge(bodyExample({ action: "tag", filter: { q: "laptop" }, add_tags: ["to replace"] })),
    HttpApiEndpoint.get("list", "/", {
      query: { limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(Cursor) },
      success: HttpApiSchema.WithHeaders(Schema.Array(BulkKeyChange), NextCursor)
    })
      .annotateMerge(operation("List the changes of many keys", "operators:manage"))
      .annotateMerge(skipsUnreadable),
    HttpApiEndpoint.get("selection", "/selection", {
      query: KeyFilter,
      success: Schema.Struct({ selected: Schema.Int, is_too_many: Schema.Boolean })
    })
      .annotateMerge(operation("Count the keys that a filter selects", "operators:manage"))
      .annotate(OpenApi.Description, `\`is_too_many\`: there are more than ${maxKeys}, and a change would be refused.`),
    HttpApiEndpoint.get("get", "/:id", { params, success: BulkKeyChangeWithFailures }).annotateMerge(
      operation("Show how far a change of many keys is", "operators:manage")
    ),
    HttpApiEndpoint.post("stop", "/:id/stop", { params, success: BulkKeyChange })
      .annotateMerge(operation("Stop a change of many keys", "keys:disable", "policies:update"))
      .annotate(OpenApi.Description, "Keys that were changed stay so. A change that has ended stays as it is."),
    HttpApiEndpoint.post("undo", "/:id/undo", {
      params,
      success: BulkKeyChange,
      error: refusals("invalid_bulk_key_change", "bulk_key_change_running", "too_many_bulk_key_changes")
    })
      .annotateMerge(operation("Undo a change of many keys", "keys:disable", "policies:update"))
      .annotate(
        OpenApi.Description,
        "Restores what the change has replaced, by another change, in keys that are still as it left them. It requires the scopes of the first one. After an undo that was stopped, or could not restore each key, another one may begin."
      )
  )
  .prefix("/bulk-key-changes")

import type { BodyOf } from "../../../api/Endpoints.ts"
import type { PolicyValues } from "../../../shared/policy/fields.ts"
import type { GuardrailValues } from "../../../shared/policy/GuardrailForm.tsx"
import type { keysPath } from "../words/key.ts"

type NewKey = BodyOf<"POST", typeof keysPath>
export type Preset = NonNullable<NewKey["preset"]>

export interface Draft {
  readonly name: string
  readonly description: string
  readonly owner_email: string
  readonly tags: ReadonlyArray<string>
  readonly project_id: string | null
  /** Those of a key without a project. */
  readonly service_names: ReadonlyArray<string>
  readonly team_id: string
  readonly expires_at: string | null
  readonly rotation_due_at: string | null
  readonly holder_rotation: boolean
  readonly preset: Preset | null
  /** The fields that differ from those of the preset. */
  readonly policy: PolicyValues
  readonly guardrails: GuardrailValues
}

export const draftFor = (project: string | undefined): Draft => ({
  name: "",
  description: "",
  owner_email: "",
  tags: [],
  project_id: project ?? null,
  service_names: [],
  team_id: "",
  expires_at: null,
  rotation_due_at: null,
  holder_rotation: false,
  preset: "developer",
  policy: {},
  guardrails: {}
})

const given = <Value>(name: string, value: Value | null | "", isGiven = value !== null && value !== "") =>
  isGiven ? { [name]: value } : {}

/** What is sent. Whatever the person left as it is stays out, so that the command to copy is short. */
export const bodyOf = (draft: Draft): NewKey => ({
  ...given("name", draft.name.trim()),
  ...given("description", draft.description.trim()),
  ...given("owner_email", draft.owner_email.trim()),
  ...given("tags", draft.tags, draft.tags.length > 0),
  owner_type: draft.project_id === null ? "individual" : "project",
  ...given("project_id", draft.project_id),
  ...given("service_names", draft.service_names, draft.project_id === null && draft.service_names.length > 0),
  ...given("team_id", draft.team_id.trim()),
  ...given("expires_at", draft.expires_at),
  ...given("rotation_due_at", draft.rotation_due_at),
  ...given("holder_rotation", draft.holder_rotation, draft.holder_rotation),
  ...given("preset", draft.preset),
  ...given("policy", draft.policy, Object.keys(draft.policy).length > 0),
  ...given("guardrail_policy", draft.guardrails, Object.keys(draft.guardrails).length > 0)
})

const stepFields: ReadonlyArray<ReadonlyArray<string>> = [
  [
    "name",
    "description",
    "owner_email",
    "tags",
    "owner_type",
    "project_id",
    "service_names",
    "team_id",
    "expires_at",
    "rotation_due_at",
    "holder_rotation"
  ],
  ["preset"],
  ["policy"],
  ["guardrail_policy"]
]

/** The step that has a field, by the server's name of it, such as `policy.rpm_limit`. */
export const stepOfField = (field: string | undefined): number | undefined => {
  const name = field?.split(".")[0] ?? ""
  const step = stepFields.findIndex((fields) => fields.includes(name))
  return step === -1 ? undefined : step
}

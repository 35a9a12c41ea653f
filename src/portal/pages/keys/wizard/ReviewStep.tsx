import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { useProjectName } from "../../../shared/keys/ProjectPicker.tsx"
import { EffectiveTable } from "../../../shared/policy/EffectiveTable.tsx"
import { flatFields } from "../../../shared/policy/flatFields.ts"
import { usePolicyFields } from "../../../shared/policy/usePolicyFields.ts"
import { type Fact, Facts } from "../../../shared/words/Facts.tsx"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { When } from "../../../shared/words/When.tsx"
import type { bodyOf, Draft } from "./draft.ts"
import { reviewed } from "./reviewed.ts"

interface Props {
  readonly draft: Draft
  readonly body: ReturnType<typeof bodyOf>
}

/** All that the key will be, before it is made. */
export const ReviewStep = ({ body, draft }: Props) => {
  const mayLook = useAllowed("operators:manage", "policies:update")
  const project = useProjectName(draft.project_id)
  const fields = usePolicyFields()
  const presets = useApi("/admin-ui/admin/policy/presets", {})
  const above = useApi(
    "/admin-ui/admin/policy/effective",
    { query: { project_id: draft.project_id ?? undefined, team_id: draft.team_id.trim() || undefined } },
    { enabled: mayLook }
  )
  const base = presets.data?.find(({ name }) => name === draft.preset)?.policy ?? {}
  const facts: ReadonlyArray<Fact> = [
    ["Name", body.name && <ForeignText key="name">{body.name}</ForeignText>],
    [
      "Project",
      draft.project_id === null ? "none: an individual key" : <ForeignText key="project">{project}</ForeignText>
    ],
    ["Services", body.service_names && <ForeignText key="services">{body.service_names.join(", ")}</ForeignText>],
    ["Owner", body.owner_email],
    ["Team", body.team_id && <ForeignText key="team">{body.team_id}</ForeignText>],
    ["Description", body.description && <ForeignText key="description">{body.description}</ForeignText>],
    ["Tags", draft.tags.join(", ")],
    ["Expires", <When key="expires" at={draft.expires_at} absent="never" />],
    ["Rotation due", <When key="due" at={draft.rotation_due_at} absent="never" />],
    ["Rotation by its holder", body.holder_rotation ? "allowed" : "not allowed"],
    ["Preset", <code key="preset">{draft.preset ?? "none"}</code>]
  ]
  return (
    <>
      <Facts facts={facts} />
      <h3>Its own policy</h3>
      {fields.data !== undefined && <Facts facts={reviewed(fields.data.fields, base, { ...base, ...draft.policy })} />}
      {Object.keys(draft.guardrails).length > 0 && (
        <>
          <h3>Guardrails</h3>
          <FieldDiff before={{}} after={flatFields(draft.guardrails)} />
        </>
      )}
      {above.data !== undefined && above.data.layers.length > 0 && (
        <>
          <h3>What the layers above it restrict</h3>
          <EffectiveTable effective={above.data} />
        </>
      )}
    </>
  )
}

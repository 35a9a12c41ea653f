import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { EffectiveTable } from "../../../shared/policy/EffectiveTable.tsx"
import { flatFields } from "../../../shared/policy/flatFields.ts"
import { type Fact, Facts } from "../../../shared/words/Facts.tsx"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { When } from "../../../shared/words/When.tsx"
import type { bodyOf, Draft } from "./draft.ts"
import styles from "./NewKeyPage.module.css"

interface Props {
  readonly draft: Draft
  readonly body: ReturnType<typeof bodyOf>
}

const mostProjects = 500

/** All that the key will be, before it is made. */
export const ReviewStep = ({ body, draft }: Props) => {
  const maySee = useAllowed("usage:read")
  const mayLook = useAllowed("operators:manage", "policies:update")
  const projects = useApi("/admin-ui/admin/projects", { query: { limit: mostProjects } }, { enabled: maySee })
  const presets = useApi("/admin-ui/admin/policy/presets", {})
  const above = useApi(
    "/admin-ui/admin/policy/effective",
    { query: { project_id: draft.project_id ?? undefined, team_id: draft.team_id.trim() || undefined } },
    { enabled: mayLook }
  )
  const project = projects.data?.find(({ id }) => id === draft.project_id)
  const base = presets.data?.find(({ name }) => name === draft.preset)?.policy ?? {}
  const facts: ReadonlyArray<Fact> = [
    ["Name", body.name && <ForeignText key="name">{body.name}</ForeignText>],
    [
      "Project",
      draft.project_id === null ? (
        "none: an individual key"
      ) : (
        <ForeignText key="project">{project?.name ?? draft.project_id}</ForeignText>
      )
    ],
    ["Owner", body.owner_email],
    ["Team", body.team_id && <ForeignText key="team">{body.team_id}</ForeignText>],
    ["Tags", draft.tags.join(", ")],
    ["Expires", <When key="expires" at={draft.expires_at} absent="never" />],
    ["Rotation due", <When key="due" at={draft.rotation_due_at} absent="never" />],
    ["Preset", <code key="preset">{draft.preset ?? "none"}</code>]
  ]
  return (
    <>
      <Facts facts={facts} />
      <h3>What differs from the preset</h3>
      {Object.keys(draft.policy).length + Object.keys(draft.guardrails).length === 0 ? (
        <p className={styles.none}>Nothing.</p>
      ) : (
        <FieldDiff
          before={flatFields({ policy: base })}
          after={{ ...flatFields({ policy: { ...base, ...draft.policy } }), ...flatFields(draft.guardrails) }}
        />
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

import { Button, Stack, Table } from "@mantine/core"
import { useState } from "react"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { DraftDialog } from "../../../shared/change/DraftDialog.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { type EffectivePolicy, LayerName } from "../../../shared/policy/EffectiveTable.tsx"
import { changedValues } from "../../../shared/policy/fields.ts"
import { GuardrailForm, type GuardrailValues } from "../../../shared/policy/GuardrailForm.tsx"
import { ImpactNote } from "../../../shared/policy/Impact.tsx"
import { JsonView } from "../../../shared/words/JsonView.tsx"
import { type Meaning, StatusWord } from "../../../shared/words/StatusWord.tsx"
import { ChangeKey } from "../actions/ChangeKey.tsx"
import { type Key, keyName } from "../words/key.ts"
import styles from "./KeyPage.module.css"

type Rule = "mandatory" | "optional" | "forbidden" | "on by default"

const words: Readonly<Record<Rule, readonly [meaning: Meaning, sentence: string]>> = {
  mandatory: ["good", "checks every request"],
  "on by default": ["good", "checks every request"],
  optional: ["waiting", "checks requests that ask for it"],
  forbidden: ["idle", "checks no request"]
}

/** Which guardrails check the requests of a key, and which layer says so. */
export const KeyGuardrails = ({ of: key }: { readonly of: Key }) => {
  const mayEdit = useAllowed("policies:update") && key.revoked_at === null
  const [isEditing, setEditing] = useState(false)
  const effective = useApi("/admin-ui/admin/policy/effective", { query: { key_id: key.id } })
  const catalogue = useApi("/admin-ui/admin/guardrails", {})
  const onByDefault = (catalogue.data?.guardrails ?? []).filter(({ default_on, enabled }) => default_on && enabled)
  const rows =
    effective.data === undefined
      ? []
      : rulesOf(
          effective.data,
          onByDefault.map(({ name }) => name)
        )
  const overrides = effective.data?.guardrail_policy.guardrail_config_overrides ?? {}
  return (
    <Stack gap="sm">
      <Panel
        title="Guardrails"
        query={effective}
        height={160}
        flush
        actions={mayEdit && <Button onClick={() => setEditing(true)}>Edit its own</Button>}
        {...(rows.length === 0 && {
          empty: <p className={styles.none}>No guardrail checks the requests of this key.</p>
        })}
      >
        <Table aria-label="Guardrails">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Guardrail</Table.Th>
              <Table.Th>Rule</Table.Th>
              <Table.Th>Set by</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map(({ layers, name, rule }) => (
              <Table.Tr key={name}>
                <Table.Td className={styles.wrap}>
                  <code>{name}</code>
                </Table.Td>
                <Table.Td>
                  <StatusWord meaning={words[rule][0]}>{rule}</StatusWord> {words[rule][1]}
                </Table.Td>
                <Table.Td>
                  {layers.map((layer) => (
                    <LayerName key={layer.layer} {...layer} />
                  ))}
                  {layers.length === 0 && "the catalogue"}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Panel>
      {Object.keys(overrides).length > 0 && (
        <Panel title="Their configuration for this key">
          <JsonView label="Configuration" value={overrides} />
        </Panel>
      )}
      {isEditing && <EditGuardrails of={key} onClose={() => setEditing(false)} />}
    </Stack>
  )
}

const rulesOf = ({ guardrail_policy, layers }: EffectivePolicy, onByDefault: ReadonlyArray<string>) => {
  const {
    forbidden_guardrails: forbidden,
    mandatory_guardrails: mandatory,
    optional_guardrails: optional
  } = guardrail_policy
  const names = [...new Set([...mandatory, ...onByDefault, ...optional, ...forbidden])]
  return names.map((name) => {
    const rule: Rule = forbidden.includes(name)
      ? "forbidden"
      : mandatory.includes(name)
        ? "mandatory"
        : onByDefault.includes(name)
          ? "on by default"
          : "optional"
    const list = rule === "on by default" ? undefined : (`${rule}_guardrails` as const)
    return {
      name,
      rule,
      layers: list === undefined ? [] : layers.filter((layer) => layer.guardrail_policy[list].includes(name))
    }
  })
}

interface EditProps {
  readonly of: Key
  readonly onClose: () => void
}

const EditGuardrails = ({ of, onClose }: EditProps) => {
  const [key] = useState(of)
  const [draft, setDraft] = useState<GuardrailValues>(key.guardrail_policy)
  const [isReviewing, setReviewing] = useState(false)
  const changes = changedValues({ ...key.guardrail_policy }, { ...draft })
  if (isReviewing) {
    return (
      <ChangeKey
        base={key}
        changes={{ guardrail_policy: changes }}
        onClose={() => setReviewing(false)}
        done={`The guardrails of ${keyName(key)} are changed.`}
        onDone={onClose}
      >
        <ImpactNote proposal={{ key_id: key.id, guardrail_policy: changes }} />
      </ChangeKey>
    )
  }
  return (
    <DraftDialog
      title={`The guardrails of ${keyName(key)}`}
      isChanged={Object.keys(changes).length > 0}
      onReview={() => setReviewing(true)}
      onClose={onClose}
    >
      <GuardrailForm values={draft} onChange={setDraft} />
    </DraftDialog>
  )
}

import { Radio } from "@mantine/core"
import { useApi } from "../../../api/queries.ts"
import { Panel } from "../../../shared/page/Panel.tsx"
import { fieldText, restrictingOf } from "../../../shared/policy/fields.ts"
import { usePolicyFields } from "../../../shared/policy/usePolicyFields.ts"
import type { Draft } from "./draft.ts"
import styles from "./NewKeyPage.module.css"

interface Props {
  readonly draft: Draft
  readonly onChange: (change: Partial<Draft>) => void
}

const none = "none"

/** What the policy begins with. */
export const PresetStep = ({ draft, onChange }: Props) => {
  const presets = useApi("/admin-ui/admin/policy/presets", {})
  const described = usePolicyFields()
  const fields = described.data?.fields ?? []
  const choose = (value: string) =>
    // what was set for another preset would be a surprise in this one
    onChange({ preset: presets.data?.find(({ name }) => name === value)?.name ?? null, policy: {} })
  return (
    <Panel query={presets} height={240}>
      <Radio.Group
        aria-label="Preset"
        value={draft.preset ?? none}
        onChange={choose}
        description="The policy that the key begins with. The next step changes it."
      >
        <div className={styles.presets}>
          {presets.data?.map(({ name, policy }) => (
            <Radio.Card key={name} value={name} className={styles.preset ?? ""}>
              <span className={styles.presetName}>
                <Radio.Indicator size="xs" /> <code>{name}</code>
              </span>
              <ul>
                {Object.entries(restrictingOf(fields, policy)).map(([field, value]) => {
                  const one = fields.find((each) => each.field === field)
                  return (
                    <li key={field}>
                      <code>{field}</code> {one === undefined ? "" : fieldText(one, value)}
                    </li>
                  )
                })}
              </ul>
            </Radio.Card>
          ))}
          <Radio.Card value={none} className={styles.preset ?? ""}>
            <span className={styles.presetName}>
              <Radio.Indicator size="xs" /> no preset
            </span>
            <ul>
              <li>Nothing is restricted but by the layers above the key.</li>
            </ul>
          </Radio.Card>
        </div>
      </Radio.Group>
    </Panel>
  )
}

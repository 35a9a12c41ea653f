import { Autocomplete, TextInput } from "@mantine/core"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { LazySelect } from "../../../shared/fields/LazySelect.tsx"
import { ProjectPicker } from "../../../shared/keys/ProjectPicker.tsx"
import { usePolicyFields } from "../../../shared/policy/usePolicyFields.ts"
import type { LayerKind } from "../words/layer.ts"
import styles from "../words/Policies.module.css"

interface Props {
  readonly kind: LayerKind
  readonly scope: string
  readonly onChange: (kind: LayerKind, scope: string) => void
  readonly error?: string | undefined
}

/** Whom a layer is for. */
export const ScopeFields = ({ error, kind, onChange, scope }: Props) => {
  const described = usePolicyFields()
  const kinds = described.data?.layer_kinds ?? []
  return (
    <div className={styles.pick}>
      <LazySelect
        label="For"
        data={kinds.map((value) => ({ value, label: value === "global" ? "all keys" : `a ${value}` }))}
        value={kind}
        onChange={(next) => {
          const found = kinds.find((one) => one === next)
          if (found !== undefined) onChange(found, "")
        }}
        allowDeselect={false}
        data-autofocus
      />
      <ScopeInput kind={kind} scope={scope} error={error} onChange={(next) => onChange(kind, next)} />
    </div>
  )
}

interface InputProps {
  readonly kind: LayerKind
  readonly scope: string
  readonly onChange: (scope: string) => void
  readonly error: string | undefined
}

const ScopeInput = ({ error, kind, onChange, scope }: InputProps) => {
  const described = usePolicyFields()
  const maySee = useAllowed("usage:read")
  const models = useApi(
    "/admin-ui/admin/usage/filter-values",
    { query: { field: "model" } },
    { enabled: maySee && kind === "model" }
  )
  switch (kind) {
    case "global":
      return null
    case "project":
      return (
        <ProjectPicker
          label="Project"
          value={scope === "" ? null : scope}
          onChange={(next) => onChange(next ?? "")}
          error={error}
        />
      )
    case "route":
      return (
        <LazySelect
          label="Route"
          data={[...(described.data?.routes ?? [])]}
          value={scope === "" ? null : scope}
          onChange={(next) => onChange(next ?? "")}
          searchable
          error={error}
        />
      )
    case "model":
      return (
        <Autocomplete
          size="xs"
          label="Model"
          error={error}
          data={[...(models.data?.values ?? [])]}
          value={scope}
          onChange={onChange}
        />
      )
    case "team":
      return (
        <TextInput
          label="Team"
          error={error}
          value={scope}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )
  }
}

import { Button, Group, Modal, Stack, Switch } from "@mantine/core"
import { useState } from "react"
import { useTextSearch } from "../../../address/search.ts"
import type { FieldError } from "../../../api/ApiError.ts"
import { useSubmit } from "../../../shared/change/useSubmit.ts"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { changedValues, type PolicyValues } from "../../../shared/policy/fields.ts"
import { GuardrailForm, type GuardrailValues } from "../../../shared/policy/GuardrailForm.tsx"
import { PolicyForm } from "../../../shared/policy/PolicyForm.tsx"
import { usePolicyFields } from "../../../shared/policy/usePolicyFields.ts"
import { isStored, type Layer, type LayerKind, layerAt, layerName, type NewLayer, policyOf } from "../words/layer.ts"
import { LayerReview } from "./LayerReview.tsx"
import { ScopeFields } from "./ScopeFields.tsx"

interface Props {
  /** The layer to change. Without one, a new one is made. */
  readonly layer?: Layer
  readonly kind?: LayerKind
  readonly scope?: string | undefined
  readonly onClose: () => void
}

const notEmpty = (values: PolicyValues) => Object.keys(values).length > 0

/** Makes or changes a layer: whom it is for, what each key may do, and what all of them share. */
export const LayerEditor = ({ kind: firstKind = "team", layer: current, onClose, scope: firstScope }: Props) => {
  const { change } = useTextSearch()
  const described = usePolicyFields()
  // what the person saw when the form opened, also if the layer changes meanwhile
  const [layer] = useState(current)
  const [kind, setKind] = useState<LayerKind>(layer?.kind ?? firstKind)
  const [scope, setScope] = useState(layer?.scope_id ?? firstScope ?? "")
  const [enabled, setEnabled] = useState(layer?.enabled ?? true)
  const before = {
    policy: layer === undefined ? {} : policyOf(layer),
    shared: layer?.shared ?? {},
    guardrails: layer?.guardrail_policy ?? {}
  }
  const [policy, setPolicy] = useState<PolicyValues>(before.policy)
  const [shared, setShared] = useState<PolicyValues>(before.shared)
  const [guardrails, setGuardrails] = useState<GuardrailValues>(before.guardrails)
  const [reviewed, setReviewed] = useState<Layer | NewLayer>()
  const lookup = useSubmit<Layer | NewLayer>()
  const [errors, setErrors] = useState<ReadonlyArray<FieldError>>([])
  const isShared = (name: string) => described.data?.shared.includes(name) === true
  const parts = {
    policy: changedValues({ ...before.policy }, policy),
    shared: changedValues({ ...before.shared }, shared),
    guardrail_policy: changedValues({ ...before.guardrails }, { ...guardrails })
  }
  const base = layer ?? reviewed
  const changes = {
    ...(enabled !== (base === undefined || !isStored(base) || base.enabled) && { enabled }),
    ...(notEmpty(parts.policy) && { policy: parts.policy }),
    ...(notEmpty(parts.shared) && { shared: parts.shared }),
    ...(notEmpty(parts.guardrail_policy) && { guardrail_policy: parts.guardrail_policy })
  }
  const back = () => setReviewed(undefined)
  // somebody else may have made the layer of this scope long ago
  const review = async () => setReviewed(layer ?? (await lookup.submit(() => layerAt(kind, scope))))
  const refuse = (fields: ReadonlyArray<FieldError>) => {
    setErrors(fields)
    back()
  }

  if (reviewed !== undefined) {
    return (
      <LayerReview
        layer={reviewed}
        changes={changes}
        onClose={back}
        onRefused={refuse}
        onDone={(id) => {
          onClose()
          if (layer === undefined) change({ do: undefined, kind: undefined, scope: undefined, open: id })
        }}
      >
        {layer === undefined && isStored(reviewed) && (
          <p>There is such a layer already. These fields of it change; the others stay as they are.</p>
        )}
      </LayerReview>
    )
  }
  return (
    <Modal
      opened
      onClose={onClose}
      title={layer === undefined ? "Create a layer" : `The layer of ${layerName(layer)}`}
      size={1000}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void review()
        }}
      >
        <Stack gap="md">
          {described.error !== null && <ErrorNote error={described.error} />}
          {layer === undefined && (
            <ScopeFields
              kind={kind}
              scope={scope}
              error={errors.find(({ field }) => field === "scope_id")?.message}
              onChange={(next, id) => {
                setKind(next)
                setScope(id)
              }}
            />
          )}
          <Switch
            label="It is in force"
            description="A layer that is switched off keeps its settings and restricts nothing."
            checked={enabled}
            onChange={({ currentTarget }) => setEnabled(currentTarget.checked)}
          />
          <h3>Each key by itself</h3>
          <PolicyForm
            values={policy}
            before={before.policy}
            errors={errors}
            onChange={(name, value) => setPolicy((was) => ({ ...was, [name]: value }))}
          />
          <h3>All keys together</h3>
          <PolicyForm
            values={shared}
            before={before.shared}
            errors={errors}
            onChange={(name, value) => setShared((was) => ({ ...was, [name]: value }))}
            only={({ field }) => isShared(field)}
            prefix="shared"
          />
          <h3>Guardrails</h3>
          <GuardrailForm values={guardrails} onChange={setGuardrails} errors={errors} />
          {lookup.error !== null && <ErrorNote error={lookup.error} />}
          <Group justify="end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button
              type="submit"
              loading={lookup.isBusy}
              disabled={layer === undefined ? kind !== "global" && scope === "" : Object.keys(changes).length === 0}
            >
              See whom it hits
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

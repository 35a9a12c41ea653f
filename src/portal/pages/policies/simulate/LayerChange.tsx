import { useEffect, useEffectEvent, useMemo } from "react"
import { useApi } from "../../../api/queries.ts"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { ChosenFields } from "../../../shared/policy/ChosenFields.tsx"
import { changedValues } from "../../../shared/policy/fields.ts"
import { GuardrailForm } from "../../../shared/policy/GuardrailForm.tsx"
import { usePolicyFields } from "../../../shared/policy/usePolicyFields.ts"
import { ScopeFields } from "../editor/ScopeFields.tsx"
import { isStored, layersPath, newLayer, policyOf, scopeQuery } from "../words/layer.ts"
import { hasScope, isProposed, noChanges, type ProposalDraft } from "./proposal.ts"
import { noGuardrails } from "./request.ts"

interface Props {
  readonly draft: ProposalDraft
  readonly onChange: (draft: ProposalDraft) => void
}

/** Asks what would change of a layer: what each key may do, what all of them share, and which guardrails check them. */
export const LayerChange = ({ draft, onChange }: Props) => {
  const { kind, scope } = draft
  const isReady = hasScope(draft)
  const described = usePolicyFields()
  const found = useApi(layersPath, { query: scopeQuery(kind, scope) }, { enabled: isReady })
  const layers = isReady && !found.isPlaceholderData ? found.data : undefined
  const newest = useMemo(
    () => (layers === undefined ? undefined : (layers[0] ?? newLayer(kind, scope))),
    [layers, kind, scope]
  )
  const { layer } = draft
  // a change is shown, and made, on top of the version with which it began: who was faster is told when it is made
  const hasBegun = layer !== undefined && isProposed(draft)
  const note = useEffectEvent(() => onChange({ ...draft, layer: newest }))
  useEffect(() => {
    if (newest !== undefined && !hasBegun) note()
  }, [newest, hasBegun])
  const stored = layer !== undefined && isStored(layer) ? layer : undefined
  const guardrails = { ...noGuardrails, ...stored?.guardrail_policy }
  return (
    <>
      <ScopeFields
        kind={kind}
        scope={scope}
        onChange={(next, id) => onChange({ ...draft, ...noChanges, kind: next, scope: id, layer: undefined })}
      />
      {isReady && layer === undefined && found.error !== null && (
        <ErrorNote error={found.error} onRetry={() => found.refetch()} />
      )}
      {isReady && (layer !== undefined || found.error === null) && (
        <p aria-busy={layer === undefined}>
          {layer === undefined
            ? "Looking for the layer…"
            : isStored(layer)
              ? "The layer as it is, with these changes:"
              : "There is no such layer yet: it would be made."}
        </p>
      )}
      {layer !== undefined && (
        <>
          <h3>Each key by itself</h3>
          <ChosenFields
            before={stored === undefined ? {} : policyOf(stored)}
            changes={draft.policy}
            onChange={(policy) => onChange({ ...draft, policy })}
          />
          <h3>All keys together</h3>
          <ChosenFields
            label="Change a shared limit"
            before={{ ...stored?.shared }}
            changes={draft.shared}
            onChange={(shared) => onChange({ ...draft, shared })}
            only={({ field }) => described.data?.shared.includes(field) === true}
          />
          <h3>Guardrails</h3>
          <GuardrailForm
            // its text of overrides begins with those that are stored
            key={stored === undefined ? "" : `${stored.id} ${stored.updated_at}`}
            values={{ ...guardrails, ...draft.guardrails }}
            onChange={(values) => onChange({ ...draft, guardrails: changedValues({ ...guardrails }, { ...values }) })}
          />
        </>
      )}
    </>
  )
}

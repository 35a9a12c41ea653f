import { Stack } from "@mantine/core"
import { useEffect, useEffectEvent, useMemo } from "react"
import { useApi } from "../../../api/queries.ts"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { Segments } from "../../../shared/page/Segments.tsx"
import { ChosenFields } from "../../../shared/policy/ChosenFields.tsx"
import { ScopeFields } from "../editor/ScopeFields.tsx"
import { isStored, layersPath, newLayer, policyOf, scopeQuery } from "../words/layer.ts"
import { hasScope, type ProposalDraft } from "./proposal.ts"

interface Props {
  readonly draft: ProposalDraft
  readonly keyId: string | undefined
  readonly onChange: (draft: ProposalDraft) => void
}

const choices = [
  { value: "nothing", label: "Nothing" },
  { value: "key", label: "The key's policy" },
  { value: "layer", label: "A layer" }
] as const

/** What would change. */
export const Proposal = ({ draft, keyId, onChange }: Props) => (
  <Stack gap="sm">
    <Segments
      aria-label="What changes"
      data={[...choices]}
      value={draft.what}
      onChange={(next) => {
        const what = choices.find(({ value }) => value === next)?.value ?? "nothing"
        onChange({ ...draft, what, policy: {} })
      }}
    />
    {draft.what === "nothing" && <p>The request is decided by what is in force.</p>}
    {draft.what === "key" && <KeyChange draft={draft} keyId={keyId} onChange={onChange} />}
    {draft.what === "layer" && <LayerChange draft={draft} keyId={keyId} onChange={onChange} />}
  </Stack>
)

const KeyChange = ({ draft, keyId, onChange }: Props) => {
  const key = useApi("/admin-ui/admin/keys/:id", { params: { id: keyId ?? "" } }, { enabled: keyId !== undefined })
  return (
    <>
      {keyId === undefined && <p>Without a key, the request has no policy but this one and that of the layers.</p>}
      <ChosenFields
        before={keyId !== undefined && key.data?.id === keyId ? key.data.policy : {}}
        changes={draft.policy}
        onChange={(policy) => onChange({ ...draft, policy })}
      />
    </>
  )
}

const LayerChange = ({ draft, onChange }: Props) => {
  const { kind, scope } = draft
  const isReady = hasScope(draft)
  const found = useApi(layersPath, { query: scopeQuery(kind, scope) }, { enabled: isReady })
  const layers = isReady && !found.isPlaceholderData ? found.data : undefined
  const layer = useMemo(
    () => (layers === undefined ? undefined : (layers[0] ?? newLayer(kind, scope))),
    [layers, kind, scope]
  )
  // the change is shown, and made, on top of what is stored
  const note = useEffectEvent((stored: typeof layer) => onChange({ ...draft, layer: stored }))
  useEffect(() => note(layer), [layer])
  return (
    <>
      <ScopeFields
        kind={kind}
        scope={scope}
        onChange={(next, id) => onChange({ ...draft, kind: next, scope: id, layer: undefined })}
      />
      {isReady && layer === undefined && found.error !== null && (
        <ErrorNote error={found.error} onRetry={() => void found.refetch()} />
      )}
      {isReady && (layer !== undefined || found.error === null) && (
        <p>
          {layer === undefined
            ? "Looking for the layer…"
            : isStored(layer)
              ? "The layer as it is, with these changes:"
              : "There is no such layer yet: it would be made."}
        </p>
      )}
      <ChosenFields
        before={layer !== undefined && isStored(layer) ? policyOf(layer) : {}}
        changes={draft.policy}
        onChange={(policy) => onChange({ ...draft, policy })}
      />
    </>
  )
}

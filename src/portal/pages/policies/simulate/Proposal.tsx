import { Stack } from "@mantine/core"
import { useApi } from "../../../api/queries.ts"
import { Segments } from "../../../shared/page/Segments.tsx"
import { ChosenFields } from "../../../shared/policy/ChosenFields.tsx"
import { LayerChange } from "./LayerChange.tsx"
import { noChanges, type ProposalDraft } from "./proposal.ts"

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
        onChange({ ...draft, what, ...noChanges })
      }}
    />
    {draft.what === "nothing" && <p>The request is decided by what is in force.</p>}
    {draft.what === "key" && <KeyChange draft={draft} keyId={keyId} onChange={onChange} />}
    {draft.what === "layer" && <LayerChange draft={draft} onChange={onChange} />}
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

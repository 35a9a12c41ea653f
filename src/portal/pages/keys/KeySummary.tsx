import { Skeleton, Stack } from "@mantine/core"
import { useApi } from "../../api/queries.ts"
import { Panel } from "../../shared/page/Panel.tsx"
import { useSettled } from "../../shared/page/useSettled.ts"
import { EffectiveTable } from "../../shared/policy/EffectiveTable.tsx"
import { KeyActions } from "./actions/KeyActions.tsx"
import { KeyFacts } from "./words/KeyFacts.tsx"
import { keyPath } from "./words/key.ts"

/** A key beside the list. */
export const KeySummary = ({ id }: { readonly id: string }) => {
  const key = useApi(keyPath, { params: { id } })
  const effective = useApi("/admin-ui/admin/policy/effective", { query: { key_id: id } })
  const isKnown = useSettled([key])
  return (
    <Stack gap="sm">
      {key.isPending && <Skeleton height={30} />}
      {key.data?.id === id && <KeyActions of={key.data} />}
      <Panel query={key} height={260}>
        {key.data !== undefined && <KeyFacts of={key.data} />}
      </Panel>
      {isKnown && (
        <Panel title="What holds for it" query={effective} height={160} flush>
          {effective.data !== undefined && <EffectiveTable effective={effective.data} />}
        </Panel>
      )}
    </Stack>
  )
}

import { useApi } from "../../api/queries.ts"
import { Panel } from "../../shared/page/Panel.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import { JsonView } from "../../shared/words/JsonView.tsx"
import { When } from "../../shared/words/When.tsx"

/** A key beside the list. */
export const KeySummary = ({ id }: { readonly id: string }) => {
  const key = useApi("/admin-ui/admin/keys/:id", { params: { id } })
  return (
    <Panel query={key} height={300}>
      {key.data !== undefined && (
        <>
          <Facts
            facts={[
              ["Name", key.data.name],
              ["Prefix", <code key="prefix">{key.data.key_prefix}</code>],
              ["Created", <When key="created" at={key.data.created_at} />]
            ]}
          />
          <JsonView label="Policy" value={key.data.policy} />
        </>
      )}
    </Panel>
  )
}

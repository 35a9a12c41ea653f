import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import { When } from "../../shared/words/When.tsx"
import { tokenPath } from "./operator.ts"

/** One token or person, also one that has ended, and what it has changed. */
export const TokenDetail = ({ id }: { readonly id: string }) => {
  const query = useApi(tokenPath, { params: { id } })
  const maySeeAudit = useAllowed("audit:read")
  const token = query.data
  return (
    <Panel
      query={query}
      height={240}
      actions={maySeeAudit && <PathLink path={`/audit?span=all&actor_token_id=${id}`}>What it changed</PathLink>}
    >
      {token !== undefined && (
        <Facts
          facts={[
            ["Name", <ForeignText key="name">{token.name}</ForeignText>],
            ["Scopes", <code key="scopes">{token.scopes.join(", ")}</code>],
            ["Prefix", <code key="prefix">{token.token_prefix}</code>],
            ["Created", <When key="created" at={token.created_at} />],
            ["Last used", <When key="used" at={token.last_used_at} absent="never" />],
            ["Expires", <When key="expires" at={token.expires_at} absent="never" />],
            ["Revoked", <When key="revoked" at={token.revoked_at} absent="no" />]
          ]}
        />
      )}
    </Panel>
  )
}

import { Link } from "@tanstack/react-router"
import { useApi } from "../../api/queries.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Facts } from "../../shared/words/Facts.tsx"

export const StudioLink = () => {
  const query = useApi("/admin-ui/admin/studio/connection", {})
  return (
    <Panel title="Studio" query={query} height={80} actions={<Link to="/studio">Change the connection</Link>}>
      {query.data !== undefined && (
        <Facts
          facts={[
            ["base_url", <ForeignText key="url">{query.data.base_url ?? "not set"}</ForeignText>],
            ["token", query.data.token_configured ? "configured" : "missing"],
            ["source", query.data.source]
          ]}
        />
      )}
    </Panel>
  )
}

import { Button } from "@mantine/core"
import { useState } from "react"
import { useTextSearch } from "../../address/search.ts"
import { useApiList } from "../../api/queries.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { DetailDrawer } from "../../shared/table/DetailDrawer.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { NewToken } from "./NewToken.tsx"
import { tokensPath } from "./operator.ts"
import { RotateToken } from "./RotateToken.tsx"
import { SessionList } from "./SessionList.tsx"
import { TokenDetail } from "./TokenDetail.tsx"
import { TokenList } from "./TokenList.tsx"

const pageSize = 100

/** Who may operate: tokens, people of the identity provider, and the browsers that are signed in. */
const OperatorsPage = () => {
  const { change, text } = useTextSearch()
  const [isRotating, setRotating] = useState(false)
  const list = useApiList(tokensPath, { query: { limit: pageSize } })
  const own = list.rows.find(({ is_caller }) => is_caller)
  const isPerson = own?.kind === "person"
  return (
    <>
      <PageHeader
        title="Operators"
        lead="Whoever holds an operator token may do what its scopes say. People of the identity provider have rows of their own."
        actions={
          <>
            <CopyAs address={tokensPath} />
            {own !== undefined && !isPerson && (
              <Button variant="default" onClick={() => setRotating(true)}>
                Rotate your own token
              </Button>
            )}
            <Button onClick={() => change({ do: "create" })}>Create a token</Button>
          </>
        }
      />
      <Tabs
        tabs={[
          { value: "tokens", label: "Tokens", content: () => <TokenList list={list} kind="token" /> },
          { value: "people", label: "People", content: () => <TokenList list={list} kind="person" /> },
          { value: "sessions", label: "Sessions", content: () => <SessionList /> }
        ]}
      />
      <DetailDrawer title={() => "Operator token"}>{(id) => <TokenDetail id={id} />}</DetailDrawer>
      {text("do") === "create" && <NewToken onClose={() => change({ do: undefined })} />}
      {isRotating && own !== undefined && <RotateToken of={own} onClose={() => setRotating(false)} />}
    </>
  )
}

export default OperatorsPage

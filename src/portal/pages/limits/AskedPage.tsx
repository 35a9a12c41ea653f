import { Button } from "@mantine/core"
import { useState } from "react"
import { useTextSearch } from "../../address/search.ts"
import { addressOf } from "../../api/control.ts"
import { useApiList } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { IdLink } from "../../shared/links/IdLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { FilterBar } from "../../shared/table/FilterBar.tsx"
import { curlOf } from "../../shared/words/CopyAs.tsx"
import { countText, moneyText } from "../../shared/words/format.ts"
import { type Meaning, StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { type Asked, askedPath } from "./asked/asked.ts"
import { GrantDialog } from "./asked/GrantDialog.tsx"
import { GrantModelDialog } from "./asked/GrantModelDialog.tsx"
import { RefuseDialog } from "./asked/RefuseDialog.tsx"
import { LimitsFrame } from "./LimitsFrame.tsx"

const states = ["open", "granted", "refused"] as const
const filters = [{ name: "state", label: "State", choices: states }]
const meanings: Readonly<Record<Asked["state"], Meaning>> = { open: "waiting", granted: "good", refused: "idle" }

const columns: ReadonlyArray<Column<Asked>> = [
  {
    id: "key",
    header: "Key",
    csv: ["key_id", "key_name", "key_prefix"],
    cell: ({ key_id, key_name, key_prefix }) => <IdLink path={`/keys/${key_id}`}>{key_name ?? key_prefix}</IdLink>
  },
  {
    id: "state",
    header: "State",
    main: true,
    csv: ["state"],
    cell: ({ state }) => <StatusWord meaning={meanings[state]}>{state}</StatusWord>
  },
  {
    id: "wanted",
    header: "Wants",
    main: true,
    csv: ["meter", "amount", "model"],
    cell: ({ amount, meter, model }) =>
      model === null ? (
        <code>
          {meter ?? "more"} {amount !== null && (meter?.endsWith("_usd") === true ? moneyText : countText)(amount)}
        </code>
      ) : (
        <>
          the model <ForeignText title={model}>{model}</ForeignText>
        </>
      )
  },
  {
    id: "reason",
    header: "Because",
    main: true,
    wide: true,
    csv: ["reason"],
    cell: ({ reason }) => <ForeignText title={reason}>{reason}</ForeignText>
  },
  { id: "owner", header: "Owner", csv: ["owner_email"], cell: ({ owner_email }) => owner_email ?? "–" },
  {
    id: "asked",
    header: "Asked",
    main: true,
    labelled: true,
    csv: ["created_at"],
    cell: ({ created_at }) => <When at={created_at} />
  },
  {
    id: "answer",
    header: "Answer",
    csv: ["answer", "answered_at", "granted"],
    cell: ({ answer, answered_at, granted }) => (
      <>
        {granted !== null && (
          <>
            ends <When at={granted.until} />{" "}
          </>
        )}
        <ForeignText title={answer ?? undefined}>{answer ?? (answered_at === null ? "–" : "")}</ForeignText>
      </>
    )
  }
]

const askCommand = () =>
  curlOf({
    method: "POST",
    address: "/admin-ui/v1/me/raise-requests",
    body: { reason: "The nightly tests need more.", meter: "rpm_limit", amount: 120 }
  })

/** What holders of keys ask for. The answer appears at their pages. */
const AskedPage = () => {
  const { text } = useTextSearch()
  const mayAnswer = useAllowed("policies:update")
  const [granting, setGranting] = useState<Asked>()
  const [refusing, setRefusing] = useState<Asked>()
  const request = { query: { state: states.find((state) => state === text("state")), limit: 100 } }
  const list = useApiList(askedPath, request)
  const answers: Column<Asked> = {
    id: "answers",
    header: "Actions",
    main: true,
    cell: (asked) =>
      asked.state === "open" && (
        <>
          <Button variant="light" onClick={() => setGranting(asked)}>
            Grant …
          </Button>{" "}
          <Button variant="subtle" onClick={() => setRefusing(asked)}>
            Refuse …
          </Button>
        </>
      )
  }
  return (
    <LimitsFrame address={addressOf(askedPath, request)}>
      <Panel query={list.query} height={300} flush>
        {(instead) => (
          <DataTable
            instead={instead}
            name="asked"
            label="What holders ask for"
            columns={mayAnswer ? [...columns, answers] : columns}
            rows={list.rows}
            rowId={({ id }) => id}
            list={list}
            toolbar={<FilterBar filters={filters} />}
            empty={
              <EmptyList
                filters={filters}
                unmatched={
                  text("state") === "open"
                    ? "Nobody asks for more."
                    : "Nothing that holders asked for is in this state."
                }
              >
                <Empty command={askCommand()}>
                  Nobody asks for more. Holders of keys ask at their own pages, or with this request.
                </Empty>
              </EmptyList>
            }
          />
        )}
      </Panel>
      {granting !== undefined &&
        (granting.model === null ? (
          <GrantDialog asked={granting} onClose={() => setGranting(undefined)} />
        ) : (
          <GrantModelDialog asked={granting} model={granting.model} onClose={() => setGranting(undefined)} />
        ))}
      {refusing !== undefined && <RefuseDialog asked={refusing} onClose={() => setRefusing(undefined)} />}
    </LimitsFrame>
  )
}

export default AskedPage

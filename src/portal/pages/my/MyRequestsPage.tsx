import { Group } from "@mantine/core"
import { useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import { addressOf } from "../../api/control.ts"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { LongerRange } from "../../shared/links/LongerRange.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { DataTable } from "../../shared/table/DataTable.tsx"
import { DetailDrawer } from "../../shared/table/DetailDrawer.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { FilterBar } from "../../shared/table/FilterBar.tsx"
import { Command } from "./common/Command.tsx"
import { useModels } from "./common/useModels.ts"
import { RaiseAnswers } from "./raise/RaiseAnswers.tsx"
import { columns, filtersOf } from "./requests/columns.tsx"
import { RequestDetails } from "./requests/RequestDetails.tsx"
import { ownPath, useOwnRequests } from "./requests/useOwnRequests.ts"

/** The person's own requests: what became of them, and why. */
const MyRequestsPage = () => {
  const { change, text } = useTextSearch()
  const { range } = useRange()
  const status = text("status")
  const filter = {
    from: range.from.toISOString(),
    // a range that goes on with the time has the requests of this minute too
    to: range.isRelative ? undefined : range.to.toISOString(),
    status: status === "success" || status === "failure" ? status : undefined,
    model: text("model")
  } as const
  const list = useOwnRequests(filter)
  const models = useModels()
  const names = [
    ...new Set([...models.names, ...list.rows.flatMap(({ model }) => model ?? []), ...[text("model") ?? []].flat()])
  ]
  const filters = filtersOf(names)
  const requests = (
    <Panel query={list.query} height={320} flush>
      {(instead) => (
        <DataTable
          instead={instead}
          name="my-requests"
          label="Requests"
          columns={columns}
          rows={list.rows}
          rowId={({ id }) => id}
          onOpen={({ id }) => change({ open: id })}
          openId={text("open")}
          list={list}
          toolbar={<FilterBar filters={filters} />}
          empty={
            <EmptyList filters={filters} isOfRange={true} unmatched="No request in this range matches these filters.">
              <Empty
                action={
                  <Group gap="xs" justify="center">
                    <LinkButton path="/my/use">See how to send one</LinkButton>
                    <LongerRange />
                  </Group>
                }
              >
                No request in this range.
              </Empty>
            </EmptyList>
          }
        />
      )}
    </Panel>
  )
  return (
    <>
      <PageHeader
        title="Requests"
        lead="What you sent, what became of it, and what to do about a refusal."
        actions={<Command address={addressOf<"GET", typeof ownPath>(ownPath, { query: { ...filter, limit: 100 } })} />}
      />
      <Tabs
        tabs={[
          { value: "requests", label: "Requests", content: () => requests },
          { value: "raises", label: "Raises", content: () => <RaiseAnswers most={50} /> }
        ]}
      />
      <DetailDrawer title={() => "Request"}>
        {(id) => {
          const request = list.rows.find((row) => row.id === id)
          if (request !== undefined) return <RequestDetails request={request} />
          return list.query.isPending ? (
            <p>Reading your requests …</p>
          ) : (
            <p>It is not among the requests that are shown. Choose a longer time, or show more of them.</p>
          )
        }}
      </DetailDrawer>
    </>
  )
}

export default MyRequestsPage

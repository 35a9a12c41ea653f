import { Button, Group, Stack } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApiList } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { JsonDiff } from "../../shared/diff/JsonDiff.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { actorOf } from "../../shared/policy/actor.ts"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { DetailDrawer } from "../../shared/table/DetailDrawer.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"

type Event = ResponseOf<"GET", "/admin-ui/admin/audit-events">[number]

/** One request that changed something: an apply changes many objects, with the same request id. */
interface Step {
  readonly id: string
  readonly events: ReadonlyArray<Event>
  readonly first: Event
}

export const historyPath = "/admin-ui/admin/audit-events"
export const historyRequest = { query: { configuring: "true", limit: 200 } } as const
const liveTopics = ["configuration"] as const

/** What was configured by whom. Changes of one request stand together, as an apply makes them. */
export const History = () => {
  const { change, text } = useTextSearch()
  const mayRead = useAllowed("audit:read")
  const list = useApiList(historyPath, historyRequest, { enabled: mayRead })
  useLiveRefresh(liveTopics, [historyPath])
  if (!mayRead) {
    return (
      <p>
        The history is in the audit log. It needs <code>audit:read</code>.
      </p>
    )
  }
  const steps = [...Map.groupBy(list.rows, ({ request_id }) => request_id)].flatMap(
    ([id, events]): ReadonlyArray<Step> => {
      const [first] = events
      return first === undefined ? [] : [{ id, events, first }]
    }
  )
  return (
    <Panel query={list.query} height={360} flush>
      <DataTable
        name="configuration-history"
        label="History of the configuration"
        columns={columns}
        rows={steps}
        rowId={({ id }) => id}
        onOpen={({ id }) => change({ open: id })}
        openId={text("open")}
        empty={
          <Empty
            action={
              <LinkButton path="/configuration" search={{ tab: "plan" }}>
                Compare and apply a document
              </LinkButton>
            }
          >
            Nothing was configured yet.
          </Empty>
        }
      />
      {list.query.hasNextPage && (
        <Group p="sm" justify="center">
          <Button variant="default" onClick={() => void list.query.fetchNextPage()}>
            Older changes
          </Button>
        </Group>
      )}
      <DetailDrawer title={() => "Changes of one request"}>
        {(id) => <StepView events={steps.find((step) => step.id === id)?.events ?? []} />}
      </DetailDrawer>
    </Panel>
  )
}

const StepView = ({ events }: Pick<Step, "events">) =>
  events.length === 0 ? (
    <p>Its events are not among those that were read. Look at them in the audit log.</p>
  ) : (
    <Stack gap="md">
      {events.map(({ action, after, before, sequence, target_id }) => (
        <section key={sequence}>
          <PathLink path={`/audit?span=all&open=${sequence}`}>
            {action} <ForeignText>{target_id}</ForeignText>
          </PathLink>
          <JsonDiff before={before} after={after} label={`Difference of event ${sequence}`} />
        </section>
      ))}
    </Stack>
  )

const columns: ReadonlyArray<Column<Step>> = [
  { id: "at", header: "Time", width: 120, cell: ({ first }) => <When at={first.created_at} /> },
  {
    id: "by",
    header: "By",
    main: true,
    width: 150,
    cell: ({ first }) => <ForeignText>{actorOf(first)}</ForeignText>
  },
  {
    id: "how",
    header: "How",
    width: 110,
    cell: ({ events }) =>
      events.some(({ target_type }) => target_type === "configuration") ? (
        <StatusWord meaning="good">applied</StatusWord>
      ) : (
        "by hand"
      )
  },
  {
    id: "what",
    header: "Changes",
    main: true,
    cell: ({ events }) =>
      [...Map.groupBy(events, ({ action }) => action)]
        .map(([action, same]) => `${action}${same.length > 1 ? ` × ${same.length}` : ""}`)
        .join(", ")
  }
]

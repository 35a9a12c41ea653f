import { Progress } from "@mantine/core"
import { useQueryClient } from "@tanstack/react-query"
import { getRouteApi, Link } from "@tanstack/react-router"
import { useEffect } from "react"
import { addressOf } from "../../../api/control.ts"
import { useApi } from "../../../api/queries.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Tile, Tiles } from "../../../shared/page/Tile.tsx"
import { UnreadPage } from "../../../shared/page/UnreadPage.tsx"
import { CopyAs } from "../../../shared/words/CopyAs.tsx"
import { Facts } from "../../../shared/words/Facts.tsx"
import { countText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { staleAfterKeys } from "../words/key.ts"
import styles from "./BulkChange.module.css"
import { BulkChangeActions } from "./BulkChangeActions.tsx"
import { type BulkChange, changePath, meaningOf, sentenceOf } from "./bulkChange.tsx"

const route = getRouteApi("/operators/keys/changes/$id")

const untilEnd = ({ state }: Pick<BulkChange, "state">): number | undefined => (state === "running" ? 1_000 : undefined)

const BulkChangePage = () => {
  const { id } = route.useParams()
  // the page of another change must not show this one while it loads
  return <OneChange key={id} id={id} />
}

/** Shows the progress of a change of many keys, its failures, and the button that undoes it. */
const OneChange = ({ id }: { readonly id: string }) => {
  const client = useQueryClient()
  const known = useApi(changePath, { params: { id } }, { refreshAfter: untilEnd })
  const change = known.data
  const state = change?.state
  useEffect(() => {
    if (state === undefined || state === "running") return
    for (const path of staleAfterKeys) void client.invalidateQueries({ queryKey: [path] })
  }, [client, state])
  if (change === undefined && known.error !== null)
    return (
      <UnreadPage
        title="Bulk key change"
        query={known}
        missing={
          <Empty action={<LinkButton path="/keys/changes">All bulk changes</LinkButton>}>
            No change has the id <ForeignText>{id}</ForeignText>.
          </Empty>
        }
      />
    )
  const keys = change?.keys
  const text = (count: number | undefined) => (count === undefined ? undefined : countText(count))
  return (
    <>
      <PageHeader
        title="Bulk key change"
        beside={change !== undefined && <StatusWord meaning={meaningOf(change)}>{change.state}</StatusWord>}
        lead={change !== undefined && <ForeignText>{sentenceOf(change)}.</ForeignText>}
        actions={
          <>
            {change !== undefined && <BulkChangeActions change={change} />}
            <CopyAs address={addressOf(changePath, { params: { id } })} />
          </>
        }
      />
      {keys !== undefined && (
        <Progress
          className={styles.progress ?? ""}
          value={((keys.selected - keys.waiting) / Math.max(1, keys.selected)) * 100}
          aria-label="Keys that are done"
        />
      )}
      <Tiles>
        <Tile label="Selected" query={known} value={text(keys?.selected)} detail="when the change began" />
        <Tile label="Changed" query={known} value={text(keys?.changed)} detail="each has an audit event" />
        <Tile label="Unchanged" query={known} value={text(keys?.unchanged)} detail="so already, or revoked" />
        <Tile label="Failed" query={known} value={text(keys?.failed)} detail="the reasons are below" />
        <Tile
          label="Waiting"
          query={known}
          value={text(keys?.waiting)}
          detail={change?.stop_reason ?? (state === "done" ? "none" : "still to come")}
        />
      </Tiles>
      <div className={styles.panels}>
        <Panel
          title="Keys that could not be changed"
          query={known}
          height={120}
          empty={change?.failures.length === 0 ? <p>None.</p> : undefined}
        >
          <ul className={styles.failures}>
            {change?.failures.map(({ key_id, key_name, key_prefix, message }) => (
              <li key={key_id}>
                <Link to="/keys/$id" params={{ id: key_id }}>
                  <ForeignText>{key_name ?? key_prefix ?? key_id}</ForeignText>
                </Link>{" "}
                <ForeignText>{message}</ForeignText>
              </li>
            ))}
          </ul>
          {keys !== undefined && keys.failed > (change?.failures.length ?? 0) && (
            <p>These are the first {countText(change?.failures.length ?? 0)}.</p>
          )}
        </Panel>
        <Panel title="What it is" query={known} height={120}>
          {change !== undefined && (
            <Facts
              facts={[
                ["Begun", <When key="begun" at={change.created_at} />],
                ["Ended", <When key="ended" at={change.ended_at} absent="not yet" />],
                ...(change.project_id === null
                  ? []
                  : [["Project", <ToProject key="project" id={change.project_id} />] as const]),
                ...(change.undoes === null ? [] : [["Undoes", <ToChange key="undoes" id={change.undoes} />] as const]),
                ...(change.undone_by === null
                  ? []
                  : [["Undone by", <ToChange key="undone" id={change.undone_by} />] as const]),
                ...(change.token_id === null
                  ? []
                  : [["On behalf of", <ToOperators key="token" id={change.token_id} />] as const]),
                [
                  "Audit",
                  <Link key="audit" to="/audit" search={{ span: "all", target_type: "bulk_key_change", target_id: id }}>
                    its event
                  </Link>
                ]
              ]}
            />
          )}
        </Panel>
      </div>
    </>
  )
}

const ToChange = ({ id }: { readonly id: string }) => (
  <Link to="/keys/changes/$id" params={{ id }}>
    another change
  </Link>
)

const ToOperators = ({ id }: { readonly id: string }) => (
  <>
    the operator token{" "}
    <Link to="/operators" search={{ open: id }}>
      <code>{id.slice(0, 8)}</code>
    </Link>
  </>
)

const ToProject = ({ id }: { readonly id: string }) => (
  <Link to="/projects/$id" params={{ id }}>
    to this one
  </Link>
)

export default BulkChangePage

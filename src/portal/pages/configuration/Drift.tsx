import { Skeleton } from "@mantine/core"
import { useUtc } from "../../address/useUtc.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { shownText } from "../../shared/foreign/marks.ts"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { clockText, countedText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"

const path = "/admin-ui/admin/configuration/applied"
const liveTopics = ["configuration"] as const

/** Says whether something was changed by hand since a document was applied, and leads to the audit event of the apply. */
export const Drift = () => {
  const mayReadLog = useAllowed("audit:read")
  const utc = useUtc()
  const { data, error } = useApi(path, {})
  useLiveRefresh(liveTopics, [path])
  if (error !== null) return null
  if (data === undefined) return <Skeleton width={180} height={22} />
  const { applied } = data
  if (applied === null) return <StatusWord meaning="idle">no document was applied yet</StatusWord>
  const badge = <Badge of={data} />
  const title = `applied ${clockText(new Date(applied.at), utc)}${applied.by === null ? "" : ` by ${shownText(applied.by)}`}`
  return mayReadLog ? (
    <PathLink path={`/audit?span=all&open=${applied.sequence}`} title={title}>
      {badge}
    </PathLink>
  ) : (
    <span title={title}>{badge}</span>
  )
}

/** The server counts no further. */
const mostChanges = 1_000

const Badge = ({ of: { changes_since } }: { readonly of: ResponseOf<"GET", typeof path> }) => {
  const changes = changes_since ?? 0
  if (changes === 0) return <StatusWord meaning="good">as applied</StatusWord>
  return (
    <StatusWord meaning="warning">
      changed since the last apply by {changes >= mostChanges && "at least "}
      {countedText(changes, "event")}
    </StatusWord>
  )
}

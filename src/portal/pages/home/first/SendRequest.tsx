import { Checkbox, Loader } from "@mantine/core"
import { useEffect, useEffectEvent, useState } from "react"
import { useLive } from "../../../api/live.ts"
import { useApi } from "../../../api/queries.ts"
import { UnpricedNote } from "../../../shared/keys/UnpricedNote.tsx"
import { IdLink } from "../../../shared/links/IdLink.tsx"
import { Snippets } from "../../../shared/snippets/Snippets.tsx"
import { eventsPath, type UsageRow } from "../../../shared/usage/useUsageEvents.ts"
import { CodeBlock } from "../../../shared/words/CodeBlock.tsx"
import { durationText } from "../../../shared/words/format.ts"
import { meaningOfStatus, StatusWord } from "../../../shared/words/StatusWord.tsx"
import styles from "./FirstSteps.module.css"
import type { MadeKey } from "./MakeKey.tsx"

export interface Arrived {
  readonly requestId: string
  readonly status: number
  readonly latencyMs: number
}

interface Props {
  readonly made: MadeKey | undefined
  readonly model: string
  readonly arrived: Arrived | undefined
  readonly onArrived: (arrived: Arrived) => void
  /** The person has stored the secret: it must leave the page. */
  readonly onStored: () => void
}

/** The feed tells at once. Where it is off, the records tell a little later. */
const askEveryMs = 3_000

/** A command to copy. The page waits for its request, and shows it arrive. */
export const SendRequest = ({ arrived, made, model, onArrived, onStored }: Props) => {
  const [tool, setTool] = useState("curl")
  const begun = useState(() => new Date().toISOString())[0]
  useLive(({ requests }) => {
    if (arrived !== undefined) return
    for (const digest of [requests?.["ended"], requests?.["refused"]]) {
      for (const { key_prefix, latency_ms, request_id, status } of digest?.latest ?? []) {
        if (typeof request_id !== "string" || typeof status !== "number") continue
        if (made !== undefined && key_prefix !== made.prefix) continue
        onArrived({ requestId: request_id, status, latencyMs: typeof latency_ms === "number" ? latency_ms : 0 })
        return
      }
    }
  })
  const records = useApi(
    eventsPath,
    { query: { key_id: made?.id, from: begun, limit: 1 } },
    { enabled: arrived === undefined, refreshAfter: () => askEveryMs }
  )
  const record = records.data?.rows[0]
  const take = useEffectEvent((row: UsageRow) =>
    onArrived({ requestId: row.request_id, status: row.status_code, latencyMs: row.latency_ms })
  )
  useEffect(() => {
    if (arrived === undefined && record !== undefined) take(record)
  }, [arrived, record])

  return (
    <>
      {made !== undefined && <UnpricedNote policy={made.policy} />}
      {arrived === undefined && made?.secret !== "" && (
        <>
          <p>
            Run the command, or use the key with a tool.{" "}
            {made !== undefined && "It has the secret of the key, which is shown this one time."}
          </p>
          <Snippets secret={made?.secret} model={model} tool={tool} onTool={setTool} />
        </>
      )}
      {made !== undefined && made.secret !== "" && (
        <>
          {arrived !== undefined && <CodeBlock text={made.secret} label="Secret" />}
          <Checkbox label="I stored the secret; hide it" checked={false} onChange={onStored} />
        </>
      )}
      <p aria-live="polite" className={styles.wait}>
        {arrived === undefined ? (
          <>
            <Loader size="xs" aria-hidden="true" /> Waiting for the first request …
          </>
        ) : (
          <>
            <StatusWord meaning={meaningOfStatus(arrived.status)}>{arrived.status}</StatusWord>
            <span>
              It arrived, and took {durationText(arrived.latencyMs)}.{" "}
              <IdLink path={`/requests/${encodeURIComponent(arrived.requestId)}`}>Look at it</IdLink>
            </span>
          </>
        )}
      </p>
    </>
  )
}

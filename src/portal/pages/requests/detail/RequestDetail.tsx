import { Skeleton } from "@mantine/core"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { useSettled } from "../../../shared/page/useSettled.ts"
import { Decision } from "./Decision.tsx"
import { RawTraces } from "./RawTraces.tsx"
import styles from "./RequestDetail.module.css"
import { RequestFacts } from "./RequestFacts.tsx"
import { RequestGuardrails } from "./RequestGuardrails.tsx"
import { RequestLimits } from "./RequestLimits.tsx"
import { RequestSentence } from "./RequestSentence.tsx"
import { Timing } from "./Timing.tsx"
import { UpstreamHops } from "./UpstreamHops.tsx"
import { useRequest } from "./useRequest.ts"

interface Props {
  readonly id: string
  /** On a page of its own there is room for two columns. */
  readonly wide?: boolean
}

/** Everything about one request, beside the list and on a page of its own. */
export const RequestDetail = ({ id, wide = false }: Props) => {
  const request = useRequest(id)
  const { bundle, event, explanation, isEarly, limits, row } = request
  // the parts below wait for the decision, because its height would move them
  const isDecisionKnown = useSettled([explanation], { isBegun: row !== undefined })
  if (event.error !== null && row === undefined)
    return <ErrorNote error={event.error} onRetry={() => event.refetch()} />
  if (isEarly)
    return (
      <p>
        There is no record of <code>{id}</code>. Records are written a second or two after a request has ended; this
        page looks again by itself.
      </p>
    )
  if (row === undefined) return <Skeleton height={480} />
  const sentence = <RequestSentence row={row} request={request} />
  if (!isDecisionKnown)
    return (
      <div className={styles.stack}>
        {sentence}
        <Skeleton height={480} />
      </div>
    )
  return (
    <div className={styles.stack}>
      {sentence}
      <div className={wide ? styles.wide : styles.stack}>
        <div className={styles.stack}>
          <Panel title="Decision" query={explanation} height={180}>
            {explanation.data !== undefined && <Decision explanation={explanation.data} />}
          </Panel>
          <RequestLimits row={row} limits={limits} />
        </div>
        <div className={styles.stack}>
          <Panel title="Time" height={120}>
            <Timing row={row} guardrails={bundle.data?.guardrails ?? []} />
          </Panel>
          <Panel title="Guardrails" query={bundle} height={40}>
            {bundle.data !== undefined && <RequestGuardrails bundle={bundle.data} />}
          </Panel>
          <Panel title="Upstream" query={bundle} height={80}>
            {bundle.data !== undefined && <UpstreamHops bundle={bundle.data} row={row} />}
          </Panel>
        </div>
      </div>
      <Panel title="Record">
        <RequestFacts row={row} bundle={bundle.data} />
        {bundle.data !== undefined && <RawTraces bundle={bundle.data} />}
      </Panel>
    </div>
  )
}

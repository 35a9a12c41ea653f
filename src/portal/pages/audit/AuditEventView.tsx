import { Group, Stack } from "@mantine/core"
import { useApi } from "../../api/queries.ts"
import { JsonDiff } from "../../shared/diff/JsonDiff.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { actorOf } from "../../shared/policy/actor.ts"
import { CopyButton } from "../../shared/words/CopyButton.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import { JsonView } from "../../shared/words/JsonView.tsx"
import { When } from "../../shared/words/When.tsx"
import { Target } from "./Target.tsx"

/** One event: who, what, the difference, and its links of the chain. */
export const AuditEventView = ({ sequence }: { readonly sequence: string }) => {
  const found = useApi("/admin-ui/admin/audit-events", { query: { sequence } })
  const event = found.data?.[0]
  return (
    <Panel
      query={found}
      height={360}
      empty={
        found.data?.length === 0 ? <Empty>The log has no event of this number. It may be archived.</Empty> : undefined
      }
    >
      {event !== undefined && (
        <Stack gap="md">
          <Facts
            facts={[
              ["Action", <code key="action">{event.action}</code>],
              ["Object", <Target key="target" event={event} />],
              [
                "Its id",
                <code key="id">
                  <ForeignText>{event.target_id}</ForeignText>
                </code>
              ],
              ["By", <ForeignText key="by">{actorOf(event)}</ForeignText>],
              ["Time", <When key="at" at={event.created_at} />],
              ["Address", event.ip],
              ["User agent", event.user_agent && <ForeignText key="agent">{event.user_agent}</ForeignText>],
              ["Request", <Copied key="request" text={event.request_id} />]
            ]}
          />
          <section>
            <h3>Difference</h3>
            <JsonDiff before={event.before} after={event.after} label="Difference of the event" />
          </section>
          {event.before !== null && (
            <details>
              <summary>Before</summary>
              <JsonView label="Before" value={event.before} />
            </details>
          )}
          {event.after !== null && (
            <details>
              <summary>After</summary>
              <JsonView label="After" value={event.after} />
            </details>
          )}
          <Facts
            facts={[
              ["Hash", <Copied key="hash" text={event.hash} />],
              ["Hash of the event before", <Copied key="previous" text={event.previous_hash} />]
            ]}
          />
        </Stack>
      )}
    </Panel>
  )
}

const Copied = ({ text }: { readonly text: string }) => (
  <Group gap={4} wrap="nowrap">
    <code>{text}</code>
    <CopyButton text={text} />
  </Group>
)

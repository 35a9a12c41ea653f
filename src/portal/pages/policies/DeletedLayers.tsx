import { Button, Table } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useState } from "react"
import { call } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { PathLink } from "../../shared/page/PathLink.tsx"
import { restrictingOf, usePolicyFields } from "../../shared/policy/fields.ts"
import { When } from "../../shared/words/When.tsx"
import { NewLayerReview } from "./editor/NewLayerReview.tsx"
import { type LayerUpsert, layersPath } from "./words/layer.ts"
import styles from "./words/Policies.module.css"

type Event = ResponseOf<"GET", "/admin-ui/admin/audit-events">[number]

const mostShown = 50

/** The audit log has what a deleted layer was. */
const isLayer = (json: unknown): json is LayerUpsert & { readonly project_name?: string | null } =>
  typeof json === "object" && json !== null && "kind" in json && "policy" in json

const withoutVersion = (policy: object): object =>
  Object.fromEntries(Object.entries(policy).filter(([name]) => name !== "policy_version"))

const upsertOf = ({ guardrail_policy, kind, policy, scope_id, shared }: LayerUpsert): LayerUpsert => ({
  kind,
  ...(scope_id !== null && scope_id !== undefined && { scope_id }),
  ...(policy !== null && policy !== undefined && { policy: withoutVersion(policy) }),
  ...(shared !== undefined && { shared }),
  ...(guardrail_policy !== undefined && { guardrail_policy })
})

/** Layers that were deleted, and can be made again as they were. */
export const DeletedLayers = () => {
  const events = useApi("/admin-ui/admin/audit-events", {
    query: { action: "policies:delete-layer", limit: mostShown }
  })
  const [restoring, setRestoring] = useState<LayerUpsert>()
  const begin = async (layer: LayerUpsert) => {
    const { kind, scope_id } = layer
    const [there] = await call("GET", layersPath, { query: { kind, scope_id: scope_id ?? undefined, limit: 1 } })
    if (there === undefined) setRestoring(layer)
    else notifications.show({ message: "There is a layer of this scope again. Edit it instead.", color: "red" })
  }
  const rows = events.data ?? []
  return (
    <Panel
      title="Deleted layers"
      note={`the latest ${mostShown}, by the audit log`}
      query={events}
      height={200}
      flush
      {...(rows.length === 0 && { empty: <p className={styles.none}>No layer was deleted.</p> })}
    >
      <Table aria-label="Deleted layers">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Layer</Table.Th>
            <Table.Th>It restricted</Table.Th>
            <Table.Th>Deleted</Table.Th>
            <Table.Th>Event</Table.Th>
            <Table.Th aria-label="Restore" />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((event) => (
            <Row key={event.id} event={event} onRestore={(layer) => void begin(layer)} />
          ))}
        </Table.Tbody>
      </Table>
      {restoring !== undefined && (
        <NewLayerReview
          layer={restoring}
          onClose={() => setRestoring(undefined)}
          onDone={() => setRestoring(undefined)}
        />
      )}
    </Panel>
  )
}

interface RowProps {
  readonly event: Event
  readonly onRestore: (layer: LayerUpsert) => void
}

const Row = ({ event: { before, created_at, id, sequence }, onRestore }: RowProps) => {
  const fields = usePolicyFields().data?.fields ?? []
  if (!isLayer(before)) return null
  return (
    <Table.Tr>
      <Table.Td>
        <ForeignText>
          {before.kind === "global" ? "all keys" : `${before.kind} ${before.project_name ?? before.scope_id ?? ""}`}
        </ForeignText>
      </Table.Td>
      <Table.Td>
        {Object.keys(restrictingOf(fields, { ...before.policy })).map((name) => (
          <code key={name}>{name} </code>
        ))}
      </Table.Td>
      <Table.Td>
        <When at={created_at} />
      </Table.Td>
      <Table.Td>
        <PathLink path={`/audit?open=${id}`}>#{sequence}</PathLink>
      </Table.Td>
      <Table.Td ta="right">
        <Button variant="default" onClick={() => onRestore(upsertOf(before))}>
          Restore
        </Button>
      </Table.Td>
    </Table.Tr>
  )
}

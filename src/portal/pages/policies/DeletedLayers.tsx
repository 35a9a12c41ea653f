import { Button, Table } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useState } from "react"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { tellFailure } from "../../shared/change/useTell.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { restrictingOf } from "../../shared/policy/fields.ts"
import { usePolicyFields } from "../../shared/policy/usePolicyFields.ts"
import { When } from "../../shared/words/When.tsx"
import { LayerReview } from "./editor/LayerReview.tsx"
import { isStored, type LayerPatch, type LayerUpsert, layerAt, type NewLayer } from "./words/layer.ts"
import styles from "./words/Policies.module.css"

type Event = ResponseOf<"GET", "/admin-ui/admin/audit-events">[number]

const mostShown = 50

type DeletedLayer = LayerUpsert & { readonly project_name?: string | null }

/** The audit log has what a deleted layer was. */
const isLayer = (json: unknown): json is DeletedLayer =>
  typeof json === "object" && json !== null && "kind" in json && "policy" in json

const withoutVersion = (policy: object): object =>
  Object.fromEntries(Object.entries(policy).filter(([name]) => name !== "policy_version"))

/** All settings that the layer had: one that was switched off stays so. */
const settingsOf = ({ enabled, guardrail_policy, policy, shared }: DeletedLayer): LayerPatch => ({
  ...(enabled !== undefined && { enabled }),
  ...(policy !== null && policy !== undefined && { policy: withoutVersion(policy) }),
  ...(shared !== undefined && { shared }),
  ...(guardrail_policy !== undefined && { guardrail_policy })
})

interface Restored {
  readonly layer: NewLayer
  readonly changes: LayerPatch
}

export const deletedPath = "/admin-ui/admin/audit-events"
export const deletedRequest = { query: { action: "policies:delete-layer" as const, limit: mostShown } }

/** Layers that were deleted, and can be made again as they were. */
export const DeletedLayers = () => {
  const events = useApi(deletedPath, deletedRequest)
  const [restoring, setRestoring] = useState<Restored>()
  const begin = async (deleted: DeletedLayer) => {
    try {
      const layer = await layerAt(deleted.kind, deleted.scope_id)
      if (!isStored(layer)) setRestoring({ layer, changes: settingsOf(deleted) })
      else notifications.show({ message: "There is a layer of this scope again. Edit it instead.", color: "red" })
    } catch (cause) {
      tellFailure(cause)
    }
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
        <LayerReview {...restoring} onClose={() => setRestoring(undefined)} onDone={() => setRestoring(undefined)} />
      )}
    </Panel>
  )
}

interface RowProps {
  readonly event: Event
  readonly onRestore: (layer: DeletedLayer) => void
}

const Row = ({ event: { before, created_at, sequence }, onRestore }: RowProps) => {
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
        <PathLink path={`/audit?span=all&open=${sequence}`}>#{sequence}</PathLink>
      </Table.Td>
      <Table.Td ta="right">
        <Button variant="default" onClick={() => onRestore(before)}>
          Restore
        </Button>
      </Table.Td>
    </Table.Tr>
  )
}

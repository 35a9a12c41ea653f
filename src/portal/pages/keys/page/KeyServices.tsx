import { Button, Group, Modal, MultiSelect, Stack } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { ChangeKey } from "../actions/ChangeKey.tsx"
import { type Key, keyName } from "../words/key.ts"

/** Which registered services a key may call. */
export const KeyServices = ({ of: key }: { readonly of: Key }) => {
  const mayEdit = useAllowed("policies:update") && key.revoked_at === null
  const [isEditing, setEditing] = useState(false)
  if (key.owner_type === "project") {
    return (
      <Panel title="Services">
        <p>
          A key of a project may call the services of its project,{" "}
          <Link to="/projects/$id" params={{ id: key.project_id ?? "" }} search={{ tab: "services" }}>
            <ForeignText>{key.project_name}</ForeignText>
          </Link>
          .
        </p>
      </Panel>
    )
  }
  return (
    <Panel title="Services" actions={mayEdit && <Button onClick={() => setEditing(true)}>Change them</Button>}>
      {key.service_names.length === 0 ? (
        <p>No service is linked, so only policies restrict which services the key may call.</p>
      ) : (
        <ul>
          {key.service_names.map((name) => (
            <li key={name}>
              <ForeignText>{name}</ForeignText>
            </li>
          ))}
        </ul>
      )}
      {isEditing && <EditServices of={key} onClose={() => setEditing(false)} />}
    </Panel>
  )
}

interface EditProps {
  readonly of: Key
  readonly onClose: () => void
}

const EditServices = ({ of, onClose }: EditProps) => {
  const [key] = useState(of)
  const [names, setNames] = useState(key.service_names)
  const [isReviewing, setReviewing] = useState(false)
  const services = useApi("/admin-ui/admin/services", {})
  if (isReviewing) {
    return (
      <ChangeKey
        base={key}
        changes={{ service_names: names }}
        onClose={() => setReviewing(false)}
        done={`The services of ${keyName(key)} are changed.`}
        onDone={onClose}
      />
    )
  }
  return (
    <Modal opened onClose={onClose} title={`The services of ${keyName(key)}`}>
      <Stack gap="sm">
        <MultiSelect
          label={<code>service_names</code>}
          description="Without any, only policies restrict which services the key may call."
          data={[...new Set([...(services.data ?? []).map(({ name }) => name), ...names])]}
          value={[...names]}
          onChange={setNames}
          searchable
          clearable
          error={services.error?.message}
        />
        <Group justify="end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button onClick={() => setReviewing(true)}>See the difference</Button>
        </Group>
      </Stack>
    </Modal>
  )
}

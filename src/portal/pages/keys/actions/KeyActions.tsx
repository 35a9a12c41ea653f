import { Button, Group, Menu } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { IconDots } from "@tabler/icons-react"
import { useState } from "react"
import { useApiWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { type Key, keyName, staleAfterKeys } from "../words/key.ts"
import { EditKey } from "./EditKey.tsx"
import { MoveKey } from "./MoveKey.tsx"
import { RevokeKey } from "./RevokeKey.tsx"
import { RotateKey } from "./RotateKey.tsx"
import { StopOldSecret } from "./StopOldSecret.tsx"

type Dialog = "edit" | "move" | "rotate" | "stop-old" | "revoke"

/** What can be done with one key. What the token lacks is not there. */
export const KeyActions = ({ of: key }: { readonly of: Key }) => {
  const [dialog, setDialog] = useState<Dialog>()
  const mayDisable = useAllowed("keys:disable")
  const mayRotate = useAllowed("keys:rotate")
  const mayEdit = useAllowed("policies:update")
  const mayMove = useAllowed("keys:create") && mayEdit
  const close = () => setDialog(undefined)
  const mayStopOld = mayRotate && key.previous_key_expires_at !== null
  if (key.revoked_at !== null) return null
  return (
    <Group gap={6}>
      {mayEdit && (
        <Button variant="default" onClick={() => setDialog("edit")}>
          Edit
        </Button>
      )}
      {mayRotate && (
        <Button variant="default" onClick={() => setDialog("rotate")}>
          Rotate
        </Button>
      )}
      {mayDisable && <Switcher of={key} />}
      {(mayMove || mayDisable || mayStopOld) && (
        <Menu position="bottom-end">
          <Menu.Target>
            <Button variant="default" px={6} aria-label="More actions">
              <IconDots size={16} />
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {mayMove && <Menu.Item onClick={() => setDialog("move")}>Move to another project</Menu.Item>}
            {mayStopOld && <Menu.Item onClick={() => setDialog("stop-old")}>Stop the old secret now</Menu.Item>}
            {mayDisable && (
              <Menu.Item color="red" onClick={() => setDialog("revoke")}>
                Revoke for ever
              </Menu.Item>
            )}
          </Menu.Dropdown>
        </Menu>
      )}
      {dialog === "edit" && <EditKey of={key} onClose={close} />}
      {dialog === "move" && <MoveKey of={key} onClose={close} />}
      {dialog === "rotate" && <RotateKey of={key} onClose={close} />}
      {dialog === "stop-old" && <StopOldSecret of={key} onClose={close} />}
      {dialog === "revoke" && <RevokeKey of={key} onClose={close} />}
    </Group>
  )
}

/** Disables and enables. The one undoes the other, so that nothing is asked. */
const Switcher = ({ of: key }: { readonly of: Key }) => {
  const disable = useApiWrite("POST", "/admin-ui/admin/keys/:id/disable", staleAfterKeys)
  const enable = useApiWrite("POST", "/admin-ui/admin/keys/:id/enable", staleAfterKeys)
  const request = { params: { id: key.id } }
  const tell = (past: string, undo: () => void) => {
    const id = notifications.show({
      message: (
        <Group justify="space-between" gap="xs" wrap="nowrap">
          <span>
            <ForeignText>{keyName(key)}</ForeignText> is {past}.
          </span>
          <Button
            variant="light"
            onClick={() => {
              notifications.hide(id)
              undo()
            }}
          >
            Undo
          </Button>
        </Group>
      ),
      autoClose: 10_000
    })
  }
  const fail = ({ message }: Error) => notifications.show({ message, color: "red" })
  const turnOff = () =>
    disable.mutate(request, { onSuccess: () => tell("disabled", () => enable.mutate(request)), onError: fail })
  const turnOn = () =>
    enable.mutate(request, { onSuccess: () => tell("enabled", () => disable.mutate(request)), onError: fail })
  return (
    <Button variant="default" loading={disable.isPending || enable.isPending} onClick={key.disabled ? turnOn : turnOff}>
      {key.disabled ? "Enable" : "Disable"}
    </Button>
  )
}

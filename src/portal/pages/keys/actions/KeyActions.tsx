import { Button, Group, Menu } from "@mantine/core"
import { IconDots } from "@tabler/icons-react"
import { useState } from "react"
import { call } from "../../../api/control.ts"
import { useApiWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { tellFailure, useTell } from "../../../shared/change/useTell.tsx"
import { type Key, keyName, staleAfterKeys } from "../words/key.ts"
import { EditKey } from "./EditKey.tsx"
import { MoveKey } from "./MoveKey.tsx"
import { RevokeKey } from "./RevokeKey.tsx"
import { RotateKey } from "./RotateKey.tsx"
import { StopOldSecret } from "./StopOldSecret.tsx"

const disablePath = "/admin-ui/admin/keys/:id/disable"
const enablePath = "/admin-ui/admin/keys/:id/enable"

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
  const tell = useTell()
  const disable = useApiWrite("POST", disablePath, staleAfterKeys)
  const enable = useApiWrite("POST", enablePath, staleAfterKeys)
  const request = { params: { id: key.id } }
  const audit = { type: "key", id: key.id }
  const turnOff = () =>
    disable.mutate(request, {
      onSuccess: () =>
        tell({ done: `${keyName(key)} is disabled.`, audit, undo: () => call("POST", enablePath, request) }),
      onError: tellFailure
    })
  const turnOn = () =>
    enable.mutate(request, {
      onSuccess: () =>
        tell({ done: `${keyName(key)} is enabled.`, audit, undo: () => call("POST", disablePath, request) }),
      onError: tellFailure
    })
  return (
    <Button variant="default" loading={disable.isPending || enable.isPending} onClick={key.disabled ? turnOn : turnOff}>
      {key.disabled ? "Enable" : "Disable"}
    </Button>
  )
}

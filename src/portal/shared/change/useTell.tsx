import { Anchor, Button, Group } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useQueryClient } from "@tanstack/react-query"
import { failureOf } from "../../api/failure.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { readAgain } from "./readAgain.ts"

/** The type and the id of an object in the audit log. Without an id: all of that type. */
export interface Audited {
  readonly type: string
  readonly id?: string
}

export interface Told {
  /** Said once the server has said so. */
  readonly done: string
  /** For the link to the event. */
  readonly audit?: Audited | undefined
  readonly undo?: (() => Promise<unknown>) | undefined
  /** This is said once the change is undone. */
  readonly undone?: string | undefined
}

/** Shows an error in the corner, where the part of the page that could show it may be gone. */
export const tellFailure = (cause: unknown): void => {
  notifications.show({ message: failureOf(cause).message, color: "red" })
}

/**
 * Returns what says that a change is made, with the way back and the record of it. It also works once the dialog that
 * made the change is closed.
 */
export const useTell = (): ((told: Told) => void) => {
  const client = useQueryClient()
  return ({ audit, done, undo, undone = "It is as it was." }) => {
    const id = notifications.show({
      message: (
        <Group gap="xs">
          <ForeignText>{done}</ForeignText>
          {undo !== undefined && (
            <Button
              variant="default"
              onClick={() => {
                notifications.hide(id)
                void undo()
                  // an Undo of several steps may have failed after the first of them
                  .finally(() => readAgain(client))
                  .then(() => notifications.show({ message: undone }), tellFailure)
              }}
            >
              Undo
            </Button>
          )}
          {audit !== undefined && <AuditLink of={audit} />}
        </Group>
      ),
      autoClose: undo === undefined ? 6_000 : 12_000
    })
  }
}

/** To the events of an object in the audit log, for whoever may read it. */
export const AuditLink = ({ of: { id, type } }: { readonly of: Audited }) => {
  const mayRead = useAllowed("audit:read")
  const search = new URLSearchParams({ span: "all", target_type: type, ...(id !== undefined && { target_id: id }) })
  return mayRead && <Anchor href={`/admin-ui/audit?${search}`}>Audit event</Anchor>
}

import { Anchor, Button, Group } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useQueryClient } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { ApiError } from "../../api/ApiError.ts"
import { ChangeDialog } from "../dialogs/ChangeDialog.tsx"

export interface Change {
  readonly title: string
  readonly action: string
  /** What changes, and whom it concerns. */
  readonly body: ReactNode
  /** A change that cannot be taken back is confirmed by typing this name. */
  readonly name?: string
  readonly run: () => Promise<unknown>
  /** Said once the server has said so. */
  readonly done: string
  readonly undo?: () => Promise<unknown>
  /** What the audit log calls the object. */
  readonly audit?: { readonly type: string; readonly id: string }
  readonly onDone?: (result: unknown) => void
}

/** Returns `ask`, which shows a change before it is made, and the dialog that shows it. */
export const useConfirm = () => {
  const client = useQueryClient()
  const [change, setChange] = useState<Change>()
  const [error, setError] = useState<ApiError | null>(null)
  const [isBusy, setBusy] = useState(false)

  const close = () => {
    setChange(undefined)
    setError(null)
  }
  const confirm = async (asked: Change) => {
    setBusy(true)
    setError(null)
    try {
      const result = await asked.run()
      await client.invalidateQueries()
      close()
      asked.onDone?.(result)
      tell(asked, () => client.invalidateQueries())
    } catch (cause) {
      setError(failureOf(cause))
    } finally {
      setBusy(false)
    }
  }

  const dialog = change !== undefined && (
    <ChangeDialog
      title={change.title}
      action={change.action}
      {...(change.name !== undefined && { name: change.name })}
      isBusy={isBusy}
      error={error}
      onConfirm={() => void confirm(change)}
      onClose={close}
    >
      {change.body}
    </ChangeDialog>
  )
  return { ask: setChange, dialog }
}

export const failureOf = (cause: unknown): ApiError =>
  cause instanceof ApiError ? cause : new ApiError(0, "failed", cause instanceof Error ? cause.message : String(cause))

/** Says that a change is made, with the way back and the record of it. */
export const tell = (
  { audit, done, undo }: Pick<Change, "audit" | "done" | "undo">,
  refresh: () => Promise<unknown>
): void => {
  const id = notifications.show({
    message: (
      <Group gap="xs">
        <span>{done}</span>
        {undo !== undefined && (
          <Button
            variant="default"
            onClick={() => {
              notifications.hide(id)
              undo().then(
                () => {
                  notifications.show({ message: "It is as it was." })
                  return refresh()
                },
                (cause: unknown) => notifications.show({ message: failureOf(cause).message, color: "red" })
              )
            }}
          >
            Undo
          </Button>
        )}
        {audit !== undefined && (
          <Anchor
            href={`/admin-ui/audit?span=all&target_type=${encodeURIComponent(audit.type)}&target_id=${encodeURIComponent(audit.id)}`}
          >
            Audit event
          </Anchor>
        )}
      </Group>
    ),
    autoClose: undo === undefined ? 6_000 : 12_000
  })
}

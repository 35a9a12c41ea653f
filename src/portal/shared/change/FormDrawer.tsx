import { Button, Drawer, Stack } from "@mantine/core"
import type { FormEvent, ReactNode } from "react"
import type { ApiError } from "../../api/ApiError.ts"
import { DialogFooter } from "../dialogs/DialogFooter.tsx"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { ErrorNote } from "../page/ErrorNote.tsx"

interface Props {
  readonly title: string
  readonly action: string
  readonly isBusy: boolean
  /** Nothing has changed yet, or something is missing. */
  readonly isDisabled?: boolean
  readonly error: ApiError | null
  readonly onSubmit: () => void
  readonly onClose: () => void
  readonly children: ReactNode
}

/** A form beside its list. What the server refuses stands at its field, and above the button. */
export const FormDrawer = ({
  action,
  children,
  error,
  isBusy,
  isDisabled = false,
  onClose,
  onSubmit,
  title
}: Props) => {
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSubmit()
  }
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size={560}
      title={<ForeignText>{title}</ForeignText>}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form onSubmit={submit} noValidate>
        <Stack gap="sm">
          {children}
          {error !== null && <ErrorNote error={error} />}
          <DialogFooter>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={isBusy} disabled={isDisabled}>
              {action}
            </Button>
          </DialogFooter>
        </Stack>
      </form>
    </Drawer>
  )
}

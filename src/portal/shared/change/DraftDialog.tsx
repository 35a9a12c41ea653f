import { Button, Modal, type ModalProps, Stack } from "@mantine/core"
import type { ReactNode } from "react"
import { DialogFooter } from "../dialogs/DialogFooter.tsx"
import { ForeignText } from "../foreign/ForeignText.tsx"

interface Props {
  readonly title: string
  readonly size?: ModalProps["size"]
  /** Without a change there is no difference to see. */
  readonly isChanged: boolean
  /** Shows the difference, which is confirmed there. */
  readonly onReview: () => void
  readonly onClose: () => void
  readonly children: ReactNode
}

/** The form of a change. Its difference is shown before the change is made. */
export const DraftDialog = ({ children, isChanged, onClose, onReview, size = "lg", title }: Props) => (
  <Modal opened onClose={onClose} title={<ForeignText>{title}</ForeignText>} size={size}>
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isChanged) onReview()
      }}
    >
      <Stack gap="sm">
        {children}
        <DialogFooter>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" disabled={!isChanged}>
            See the difference
          </Button>
        </DialogFooter>
      </Stack>
    </form>
  </Modal>
)

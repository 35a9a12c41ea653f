import { Button, Modal, Stack } from "@mantine/core"
import { type ReactNode, useState } from "react"
import type { ApiError } from "../../api/ApiError.ts"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { ErrorNote } from "../page/ErrorNote.tsx"
import { DialogFooter } from "./DialogFooter.tsx"
import { isTyped, TypedName } from "./TypedName.tsx"

interface Props {
  readonly title: string
  /** What changes, and whom it concerns: a difference, an impact, a sentence. */
  readonly children: ReactNode
  readonly action: string
  /** A change that cannot be taken back is confirmed by typing this name. */
  readonly name?: string
  /** Something ends that cannot be begun again. */
  readonly isDestructive?: boolean
  /** The label of the button that changes nothing. Default: `Cancel`, which could be taken for an action of that name. */
  readonly dismiss?: string
  readonly isBusy: boolean
  /** Something is missing. */
  readonly isDisabled?: boolean
  readonly error: ApiError | null
  readonly onConfirm: () => void
  readonly onClose: () => void
}

/** Shows what a change does before it is done. */
export const ChangeDialog = (props: Props) => {
  const {
    action,
    children,
    dismiss = "Cancel",
    error,
    isBusy,
    isDisabled = false,
    name,
    onClose,
    onConfirm,
    title
  } = props
  const isRed = props.isDestructive === true || name !== undefined
  const [typed, setTyped] = useState("")
  const isConfirmed = !isDisabled && (name === undefined || isTyped({ name, typed }))
  // what was sent cannot be called off, and its answer may have a secret
  const close = isBusy ? () => {} : onClose
  return (
    <Modal opened onClose={close} title={<ForeignText>{title}</ForeignText>} size="lg">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (isConfirmed) onConfirm()
        }}
      >
        <Stack gap="sm">
          {children}
          {name !== undefined && <TypedName name={name} typed={typed} onType={setTyped} />}
          {error !== null && <ErrorNote error={error} />}
          <DialogFooter>
            <Button variant="default" onClick={close} disabled={isBusy}>
              {dismiss}
            </Button>
            <Button
              type="submit"
              loading={isBusy}
              disabled={!isConfirmed}
              {...(isRed && { color: "red" })}
              {...(name === undefined && { "data-autofocus": true })}
            >
              {action}
            </Button>
          </DialogFooter>
        </Stack>
      </form>
    </Modal>
  )
}

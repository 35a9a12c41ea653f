import { TextInput } from "@mantine/core"
import { type ReactNode, useState } from "react"
import type { ApiError } from "../../api/ApiError.ts"
import { useSession } from "../../api/session.ts"
import { ChangeDialog } from "./ChangeDialog.tsx"

/** What the API of tasks wants to know of an operation. */
export interface OperationReason {
  readonly reason: string
  readonly by: string | null
}

interface Props {
  readonly title: string
  /** What happens, and to what. */
  readonly children: ReactNode
  readonly action: string
  /** A change that cannot be taken back is confirmed by typing this name. */
  readonly name?: string
  readonly isDestructive?: boolean
  readonly dismiss?: string
  readonly placeholder: string
  readonly isBusy: boolean
  readonly error: ApiError | null
  readonly onConfirm: (why: OperationReason) => void
  readonly onClose: () => void
}

/** Asks why before something is done to a queue, a task or a replay. The audit log has who did it. */
export const ReasonDialog = ({ children, error, onConfirm, placeholder, ...dialog }: Props) => {
  const [reason, setReason] = useState("")
  const session = useSession()
  const by = session.state === "signed-in" ? session.who.name : null
  const problem = error?.fields.find(({ field }) => field === "reason")
  return (
    <ChangeDialog {...dialog} error={problem === undefined ? error : null} onConfirm={() => onConfirm({ reason, by })}>
      {children}
      <TextInput
        label="Reason"
        description="Shown beside it, and kept in its record."
        placeholder={placeholder}
        required
        value={reason}
        error={problem?.message}
        onChange={({ currentTarget }) => setReason(currentTarget.value)}
        data-autofocus
      />
    </ChangeDialog>
  )
}

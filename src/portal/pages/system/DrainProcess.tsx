import { Button } from "@mantine/core"
import { useState } from "react"
import { useApiWrite } from "../../api/queries.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { ReasonDialog } from "../../shared/dialogs/ReasonDialog.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { type System, systemPath } from "./system.ts"

interface Props {
  readonly process: NonNullable<System["processes"]>[number]
  /** The answering process loses data when it ends. */
  readonly isDataLost: boolean
}

/** Ends a process in good order: it takes no new work, and finishes what it has. */
export const DrainProcess = ({ isDataLost, process: { answers, host, id, phase, pid, role } }: Props) => {
  const drain = useApiWrite("POST", "/admin-ui/admin/system/processes/:id/drain", [systemPath])
  const tell = useTell()
  const [isOpen, setOpen] = useState(false)
  if (phase === "draining" || phase === "retiring") return null
  const name = `${role} ${pid}`
  const close = () => {
    drain.reset()
    setOpen(false)
  }
  return (
    <>
      <Button variant="default" size="compact-sm" aria-label={`Drain ${name}`} onClick={() => setOpen(true)}>
        Drain …
      </Button>
      {isOpen && (
        <ReasonDialog
          title="Drain a process"
          name={name}
          action="Drain it"
          placeholder="the host gets a new kernel"
          isBusy={drain.isPending}
          error={drain.error}
          onClose={close}
          onConfirm={({ reason }) =>
            drain.mutate(
              { params: { id }, body: { reason } },
              {
                onSuccess: () => {
                  tell({
                    done: `${name} is asked to drain. It notices it within ten seconds.`,
                    audit: { type: "process", id }
                  })
                  close()
                }
              }
            )
          }
        >
          <p>
            The {role} on <ForeignText>{host}</ForeignText> accepts no new work, finishes what runs, and ends. Whether
            another process takes its place is up to what has started it. It cannot be undone.
          </p>
          {answers && (
            <p>
              <strong>This process serves the page that you see.</strong>{" "}
              {isDataLost && "It keeps data nowhere else, which are lost when it ends."}
            </p>
          )}
        </ReasonDialog>
      )}
    </>
  )
}

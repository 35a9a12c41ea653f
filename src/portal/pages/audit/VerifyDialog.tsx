import { Button, Group, Modal, Progress, Stack } from "@mantine/core"
import { useCallback, useEffect, useState } from "react"
import type { ApiError } from "../../api/ApiError.ts"
import { ErrorNote } from "../../shared/page/ErrorNote.tsx"
import { countText } from "../../shared/words/format.ts"
import { Verdict } from "./Verdict.tsx"
import { errorOf, type Verification, verifyAll } from "./verification.ts"

type Run =
  | { readonly state: "running"; readonly part: Verification | undefined }
  | { readonly state: "ended"; readonly result: Verification }
  | { readonly state: "failed"; readonly error: ApiError }

/** Verifies the whole log in parts, from its first event to its head. Closing the dialog stops it. */
export const VerifyDialog = ({ onClose }: { readonly onClose: () => void }) => {
  const [run, setRun] = useState<Run>({ state: "running", part: undefined })

  const start = useCallback(() => {
    const stop = new AbortController()
    setRun({ state: "running", part: undefined })
    verifyAll(stop.signal, (part) => setRun({ state: "running", part })).then(
      (result) => {
        if (result !== undefined && !stop.signal.aborted) setRun({ state: "ended", result })
      },
      (cause: unknown) => {
        if (!stop.signal.aborted) setRun({ state: "failed", error: errorOf(cause) })
      }
    )
    return () => stop.abort()
  }, [])
  useEffect(() => start(), [start])

  return (
    <Modal opened onClose={onClose} title="Verify the audit chain" size="lg">
      <Stack gap="sm">
        {run.state === "running" && <Running part={run.part} />}
        {run.state === "failed" && <ErrorNote error={run.error} onRetry={start} />}
        {run.state === "ended" && <Verdict result={run.result} />}
        <Group justify="end">
          {run.state === "ended" && (
            <Button variant="default" onClick={start}>
              Verify again
            </Button>
          )}
          <Button onClick={onClose} data-autofocus variant={run.state === "ended" ? "filled" : "default"}>
            {run.state === "running" ? "Stop" : "Close"}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}

const Running = ({ part }: { readonly part: Verification | undefined }) => {
  const end = part?.head?.sequence
  const done = part?.verified_through ?? 0
  const start = part?.archived?.sequence ?? 0
  const share = end === undefined || end === start ? 0 : ((done - start) / (end - start)) * 100
  return (
    <>
      <p aria-live="polite">
        {end === undefined ? "Reading the log…" : `Event ${countText(done)} of ${countText(end)} is verified.`}
      </p>
      <Progress value={share} aria-label="Share of the log that is verified" animated />
    </>
  )
}

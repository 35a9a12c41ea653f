import { Alert, Button, FileButton, Group, Stack } from "@mantine/core"
import { type DragEvent, useState } from "react"
import { call, callWith } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { failureOf } from "../../api/failure.ts"
import { useAllowed } from "../../api/session.ts"
import { objectOf } from "../../shared/change/changed.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { errorAt, useSubmit } from "../../shared/change/useSubmit.ts"
import { JsonEditor } from "../../shared/editor/JsonEditor.tsx"
import { ErrorNote } from "../../shared/page/ErrorNote.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { countedText } from "../../shared/words/format.ts"
import styles from "./Configuration.module.css"
import { PlanView } from "./PlanView.tsx"

export type Plan = ResponseOf<"POST", "/admin-ui/admin/configuration/plan">

interface Planned {
  readonly plan: Plan
  /** The document of the plan. It is this one that is applied, whatever the editor has by then. */
  readonly document: Readonly<Record<string, unknown>>
  /** The plan that was shown before somebody else changed something. */
  readonly outdated: Plan | undefined
}

/** Compares a document with what is configured, shows whom it concerns, and applies it as a whole or not at all. */
export const PlanAndApply = () => {
  const mayApply = useAllowed("*")
  const [text, setText] = useState("")
  const [isOver, setOver] = useState(false)
  const { error, isBusy, reset, result, submit } = useSubmit<Planned>()
  const loading = useSubmit<void>()
  const { ask, dialog } = useConfirm()
  const document = objectOf(text)

  const become = (next: string) => {
    setText(next)
    reset()
  }
  const plan = (planned: Planned["document"], outdated?: Plan) =>
    submit(async () => ({
      plan: await callWith("POST", "/admin-ui/admin/configuration/plan", planned),
      document: planned,
      outdated
    }))
  const take = (file: File | null | undefined) => void file?.text().then(become)
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setOver(false)
    take(event.dataTransfer.files[0])
  }
  const load = () =>
    void loading.submit(async () => {
      const current = await call("GET", "/admin-ui/admin/configuration", { query: { omit: ["keys"] } })
      become(JSON.stringify(current, null, 2))
    })

  const apply = ({ document: planned, plan: shown }: Planned) =>
    ask({
      title: "Apply the document",
      action: `Apply ${countedText(shown.changes.length, "change")}`,
      name: "apply",
      body: <PlanView plan={shown} isShort />,
      run: async () => {
        try {
          await callWith("POST", "/admin-ui/admin/configuration/apply", {
            base_hash: shown.base_hash,
            document: planned
          })
        } catch (cause) {
          // somebody was faster: the page shows what would change now, beside what was shown
          if (failureOf(cause).status === 409) await plan(planned, shown)
          throw cause
        }
      },
      done: "The document is applied.",
      audit: { type: "configuration" },
      onDone: () => {
        reset()
        setText("")
      }
    })

  return (
    <Stack gap="sm">
      <Panel
        title="Document"
        actions={
          <>
            <Button variant="default" onClick={load} loading={loading.isBusy}>
              Begin with the current one, without keys
            </Button>
            <FileButton accept="application/json,.json" onChange={take}>
              {(props) => (
                <Button variant="default" {...props}>
                  Choose a file
                </Button>
              )}
            </FileButton>
          </>
        }
      >
        {/* biome-ignore lint/a11y/noStaticElementInteractions: a file can be chosen with the button as well */}
        <div
          className={styles.drop}
          data-over={isOver || undefined}
          onDragOver={(event) => {
            event.preventDefault()
            setOver(true)
          }}
          onDragLeave={() => setOver(false)}
          onDrop={drop}
        >
          <JsonEditor
            label="Configuration"
            description="Drag a file here, choose one, or write. A section that is left out stays as it is; one that is there is complete."
            value={text}
            onChange={become}
            error={errorAt(error, "document")}
            height={300}
          />
        </div>
        <Group mt="sm">
          <Button
            onClick={() => {
              if (document !== undefined) void plan(document)
            }}
            loading={isBusy}
            disabled={document === undefined}
          >
            Show what would change
          </Button>
        </Group>
        {error !== null && <ErrorNote error={error} />}
        {loading.error !== null && <ErrorNote error={loading.error} onRetry={load} />}
      </Panel>
      {result?.outdated !== undefined && (
        <Alert color="yellow">
          Somebody changed the configuration after the plan was made. Nothing of yours is applied. Below is the plan
          from what is configured now, and under it the one that you saw.
        </Alert>
      )}
      {result !== undefined && (
        <Panel
          title={result.outdated === undefined ? "What would change" : "What would change now"}
          note={`from ${result.plan.base_hash.slice(0, 19)}…`}
          actions={mayApply && result.plan.changes.length > 0 && <Button onClick={() => apply(result)}>Apply</Button>}
        >
          <PlanView plan={result.plan} />
        </Panel>
      )}
      {result?.outdated !== undefined && (
        <Panel title="What you saw before">
          <PlanView plan={result.outdated} />
        </Panel>
      )}
      {dialog}
    </Stack>
  )
}

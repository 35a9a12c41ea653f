import { Alert, Button, FileButton, Group, Stack } from "@mantine/core"
import { useState } from "react"
import { callWith } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useAllowed } from "../../api/session.ts"
import { objectOf } from "../../shared/change/changed.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { useSubmit } from "../../shared/change/useSubmit.ts"
import { JsonEditor } from "../../shared/editor/JsonEditor.tsx"
import { ErrorNote } from "../../shared/page/ErrorNote.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { RegistryDifference } from "./RegistryDifference.tsx"

interface Previewed {
  readonly diff: Diff
  /** The list of the difference. It is this one that is activated, whatever the editor has by then. */
  readonly list: Readonly<Record<string, unknown>>
}

type Diff = ResponseOf<"POST", "/admin-ui/admin/services/import/preview">["diff"]

const sample = `{
  "source": "by hand",
  "services": [
    { "name": "summaries", "upstream_base_url": "https://summaries.example.com" }
  ]
}
`

/** Replaces all services by a list: what it does not name is disabled. The difference is shown first. */
export const RegistryImport = () => {
  const mayChange = useAllowed("services:update")
  const [text, setText] = useState(sample)
  const { error, isBusy, reset, result, submit } = useSubmit<Previewed>()
  const { ask, dialog } = useConfirm()
  const draft = objectOf(text)
  const become = (next: string) => {
    setText(next)
    reset()
  }
  const preview = () => {
    if (draft !== undefined) {
      void submit(async () => {
        const { diff } = await callWith("POST", "/admin-ui/admin/services/import/preview", draft)
        return { diff, list: draft }
      })
    }
  }
  const activate = ({ diff, list }: Previewed) =>
    ask({
      title: "Replace the services by this list",
      action: "Activate",
      name: "activate",
      body: <RegistryDifference diff={diff} />,
      run: () => callWith("POST", "/admin-ui/admin/services/import/activate", list),
      done: "The list is active. The version before it is under Versions.",
      audit: { type: "service_registry" },
      onDone: reset
    })
  return (
    <Panel
      title="Import a list of services"
      actions={
        <FileButton accept="application/json,.json" onChange={(file) => void file?.text().then(become)}>
          {(props) => (
            <Button variant="default" {...props}>
              Choose a file
            </Button>
          )}
        </FileButton>
      }
    >
      <Stack gap="sm">
        <JsonEditor
          label="Services"
          description="The complete list. Services that it does not name are disabled and marked stale."
          value={text}
          onChange={become}
          height={260}
        />
        {error !== null && <ErrorNote error={error} />}
        {result !== undefined && <RegistryDifference diff={result.diff} />}
        {result !== undefined && result.diff.invalid.length > 0 && (
          <Alert color="red">Mend what is invalid before you activate the list.</Alert>
        )}
        <Group>
          <Button variant="default" onClick={preview} loading={isBusy} disabled={draft === undefined}>
            Show the difference
          </Button>
          {mayChange && result !== undefined && (
            <Button onClick={() => activate(result)} disabled={result.diff.invalid.length > 0}>
              Activate
            </Button>
          )}
        </Group>
      </Stack>
      {dialog}
    </Panel>
  )
}

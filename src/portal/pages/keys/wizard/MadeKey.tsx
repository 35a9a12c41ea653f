import { Button, Checkbox, Stack } from "@mantine/core"
import { useState } from "react"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { installation } from "../../../api/installation.ts"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { CodeBlock } from "../../../shared/words/CodeBlock.tsx"
import { keyName, type keysPath } from "../words/key.ts"

interface Props {
  readonly made: ResponseOf<"POST", typeof keysPath>
  readonly onStored: () => void
}

/** The secret, the one time that it is shown, and how to use it. */
export const MadeKey = ({ made, onStored }: Props) => {
  const [isStored, setStored] = useState(false)
  const gateway = installation.gateway_url ?? "http://127.0.0.1:8080"
  return (
    <>
      <PageHeader
        title={`${keyName(made.key)} is ready`}
        lead="Its secret is shown this once. Only its hash is stored here."
      />
      <Stack gap="sm">
        <Panel title="The secret">
          <Stack gap="sm">
            <CodeBlock text={made.raw_key} label="Secret" />
            <Checkbox
              label="I stored it"
              checked={isStored}
              onChange={({ currentTarget }) => setStored(currentTarget.checked)}
              autoFocus
            />
            <div>
              <Button disabled={!isStored} onClick={onStored}>
                Done: go to the key
              </Button>
            </div>
          </Stack>
        </Panel>
        <Panel title="Send a first request">
          <CodeBlock text={requestOf(gateway, made.raw_key)} label="Command" />
        </Panel>
      </Stack>
    </>
  )
}

const requestOf = (gateway: string, secret: string): string =>
  [
    `curl -s ${gateway}/v1/chat/completions`,
    `-H "authorization: Bearer ${secret}"`,
    `-H 'content-type: application/json'`,
    `-d '{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}'`
  ].join(" \\\n  ")

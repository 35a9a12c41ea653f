import { Button, Checkbox, Stack } from "@mantine/core"
import { useState } from "react"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { useUnstoredSecret } from "../../../shared/dialogs/useUnstoredSecret.ts"
import { useFirstModel } from "../../../shared/keys/firstModel.ts"
import { UnpricedNote } from "../../../shared/keys/UnpricedNote.tsx"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Snippets } from "../../../shared/snippets/Snippets.tsx"
import { CodeBlock } from "../../../shared/words/CodeBlock.tsx"
import { keyName, type keysPath } from "../words/key.ts"

interface Props {
  readonly made: ResponseOf<"POST", typeof keysPath>
  readonly goesToKey: boolean
  readonly onStored: () => void
}

/** The secret, the one time that it is shown, and how to use it. */
export const MadeKey = ({ goesToKey, made, onStored }: Props) => {
  const [isStored, setStored] = useState(false)
  useUnstoredSecret(!isStored)
  const tell = useTell()
  const end = () => {
    onStored()
    tell({ done: `${keyName(made.key)} is made.`, audit: { type: "key", id: made.key.id } })
  }
  const model = useFirstModel(made.key.policy.allowed_models)
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
              <Button disabled={!isStored} onClick={end}>
                {goesToKey ? "Done: go to the key" : "Done: make another key"}
              </Button>
            </div>
          </Stack>
        </Panel>
        <Panel title="Use it">
          <UnpricedNote policy={made.key.policy} />
          <Snippets secret={made.raw_key} {...(model.name !== undefined && { model: model.name })} />
        </Panel>
      </Stack>
    </>
  )
}

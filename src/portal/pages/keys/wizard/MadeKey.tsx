import { Button, Checkbox, Stack } from "@mantine/core"
import { useState } from "react"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { useUnstoredSecret } from "../../../shared/dialogs/useUnstoredSecret.ts"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Snippets } from "../../../shared/snippets/Snippets.tsx"
import { CodeBlock } from "../../../shared/words/CodeBlock.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { keyName, type keysPath } from "../words/key.ts"

interface Props {
  readonly made: ResponseOf<"POST", typeof keysPath>
  readonly onStored: () => void
}

/** A model that the key may call: one with a price, or what its patterns begin with. */
const useFirstModel = (allowed: ReadonlyArray<string> | null) => {
  const maySee = useAllowed("usage:read")
  const priced = useApi("/admin-ui/admin/model-prices", {}, { enabled: maySee })
  const fits = (model: string) =>
    allowed === null ||
    allowed.some((pattern) => (pattern.endsWith("*") ? model.startsWith(pattern.slice(0, -1)) : model === pattern))
  const found = priced.data?.map(({ model }) => model).find(fits)
  const begun = allowed?.[0]?.replace(/[-*]+$/, "")
  return {
    name: found ?? (begun === "" ? undefined : begun),
    isUnpriced: priced.data !== undefined && found === undefined
  }
}

/** The secret, the one time that it is shown, and how to use it. */
export const MadeKey = ({ made, onStored }: Props) => {
  const [isStored, setStored] = useState(false)
  useUnstoredSecret(!isStored)
  const model = useFirstModel(made.key.policy.allowed_models)
  const isRefused = made.key.policy.unpriced_models === "refuse" && model.isUnpriced
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
        <Panel title="Use it">
          {isRefused && (
            <p>
              <StatusWord meaning="warning">no price</StatusWord> No model that this key may call has a price yet, and
              its policy refuses models without one.{" "}
              <a href="/admin-ui/models?do=import" target="_blank" rel="noreferrer">
                Import the price book
              </a>{" "}
              first, in another tab, or set <code>unpriced_models</code> to <code>flat</code>.
            </p>
          )}
          <Snippets secret={made.raw_key} {...(model.name !== undefined && { model: model.name })} />
        </Panel>
      </Stack>
    </>
  )
}

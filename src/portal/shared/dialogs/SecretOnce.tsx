import { Button, Checkbox, Modal, Stack } from "@mantine/core"
import { type ReactNode, useState } from "react"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { CodeBlock } from "../words/CodeBlock.tsx"
import { useUnstoredSecret } from "./useUnstoredSecret.ts"

interface Props {
  readonly title: string
  readonly secret: string
  /** Called once the person says that the secret is stored. Drop it then: it must not stay in the page. */
  readonly onStored: () => void
  /** What to do with it: snippets, where it goes. */
  readonly children?: ReactNode
}

/** Shows a secret the one time that the server tells it. */
export const SecretOnce = ({ children, onStored, secret, title }: Props) => {
  const [isStored, setStored] = useState(false)
  useUnstoredSecret(!isStored)
  return (
    <Modal
      opened
      onClose={() => {}}
      withCloseButton={false}
      closeOnEscape={false}
      title={<ForeignText>{title}</ForeignText>}
      size="lg"
    >
      <Stack gap="sm">
        <p>This is the only time that it is shown. Only its hash is stored here.</p>
        <CodeBlock text={secret} label="Secret" />
        {children}
        <Checkbox
          label="I stored it"
          checked={isStored}
          onChange={({ currentTarget }) => setStored(currentTarget.checked)}
        />
        <Button disabled={!isStored} onClick={onStored}>
          Done
        </Button>
      </Stack>
    </Modal>
  )
}

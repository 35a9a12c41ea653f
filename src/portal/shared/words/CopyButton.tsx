import { ActionIcon } from "@mantine/core"
import { useClipboard } from "@mantine/hooks"
import { IconCheck, IconCopy } from "@tabler/icons-react"

interface Props {
  readonly text: string
  readonly label?: string
}

export const CopyButton = ({ label = "Copy", text }: Props) => {
  const { copied, copy } = useClipboard({ timeout: 1_500 })
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size={24}
      onClick={(event) => {
        event.stopPropagation()
        copy(text)
      }}
      title={copied ? "Copied" : label}
      aria-label={copied ? "Copied" : label}
    >
      {copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
    </ActionIcon>
  )
}

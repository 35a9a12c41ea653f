import { Button } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { IconCopy } from "@tabler/icons-react"

interface Props {
  readonly label: string
  /** The beginning of the sentence that says it is copied. */
  readonly what: string
  readonly text: () => string
}

/** Copies a longer text that is not on the page. */
export const CopyText = ({ label, text, what }: Props) => (
  <Button
    variant="default"
    leftSection={<IconCopy size={14} />}
    onClick={() =>
      void navigator.clipboard.writeText(text()).then(
        () => notifications.show({ message: `${what} is copied.` }),
        () => notifications.show({ message: "The browser did not let the page copy.", color: "red" })
      )
    }
  >
    {label}
  </Button>
)

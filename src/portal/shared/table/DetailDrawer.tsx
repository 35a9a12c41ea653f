import { Button, Drawer, Group } from "@mantine/core"
import { useNavigate } from "@tanstack/react-router"
import { Fragment, type ReactNode } from "react"
import { useTextSearch } from "../../address/search.ts"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { CopyButton } from "../words/CopyButton.tsx"

interface Props {
  readonly title: (id: string) => string
  /** The address of the whole page of the same thing, below `/admin-ui`. */
  readonly page?: (id: string) => string
  readonly children: (id: string) => ReactNode
}

/** Shows one row of a list beside it. `open` in the address has its id. */
export const DetailDrawer = ({ children, page, title }: Props) => {
  const { change, text } = useTextSearch()
  const navigate = useNavigate()
  const id = text("open")
  return (
    <Drawer
      opened={id !== undefined}
      onClose={() => change({ open: undefined })}
      position="right"
      size={640}
      title={
        id !== undefined && (
          <Group gap={6} wrap="nowrap">
            <h2>
              <ForeignText>{title(id)}</ForeignText>
            </h2>
            <CopyButton text={id} label="Copy the id" />
            {page !== undefined && (
              // Enter goes on from the row to its page
              <Button
                variant="subtle"
                data-autofocus
                title="Open the whole page (Enter)"
                onClick={() => void navigate({ href: `/admin-ui${page(id)}` })}
              >
                Whole page
              </Button>
            )}
          </Group>
        )
      }
      closeButtonProps={{ "aria-label": "Close", title: "Close (Esc)" }}
    >
      {id !== undefined && <Fragment key={id}>{children(id)}</Fragment>}
    </Drawer>
  )
}

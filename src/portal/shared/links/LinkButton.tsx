import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"

interface Props {
  /** Below `/admin-ui`. */
  readonly path: string
  readonly search?: Readonly<Record<string, string>>
  readonly variant?: "default" | "filled" | "subtle" | "light"
  readonly children: ReactNode
}

/** A button that goes to another page. It is a link, so that it can be opened in a new tab. */
export const LinkButton = ({ children, path, search, variant = "default" }: Props) => (
  <Button
    variant={variant}
    renderRoot={(props) => <Link {...props} to={path} {...(search !== undefined && { search })} />}
  >
    {children}
  </Button>
)

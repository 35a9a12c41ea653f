import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { type ReactNode, use } from "react"
import { MayOpen } from "./MayOpen.ts"

interface Props {
  /** Below `/admin-ui`. */
  readonly path: string
  readonly search?: Readonly<Record<string, string>>
  readonly variant?: "default" | "filled" | "subtle" | "light"
  readonly children: ReactNode
}

/** A button that goes to another page. It is a link, so that it can be opened in a new tab. */
export const LinkButton = ({ children, path, search, variant = "default" }: Props) => {
  const mayOpen = use(MayOpen)
  if (!mayOpen(path)) return null
  return (
    <Button
      variant={variant}
      renderRoot={(props) => <Link {...props} to={path} {...(search !== undefined && { search })} />}
    >
      {children}
    </Button>
  )
}

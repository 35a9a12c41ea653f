import { useNavigate } from "@tanstack/react-router"
import { type AnchorHTMLAttributes, type MouseEvent, type ReactNode, type Ref, use } from "react"
import { MayOpen } from "./MayOpen.ts"

interface Props extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
  /** Below `/admin-ui`, with its query, such as `/requests?key_id=…`. */
  readonly path: string
  readonly children?: ReactNode
  readonly ref?: Ref<HTMLAnchorElement>
}

/** A link to a page by its whole address, for pages whose parameters only they know. */
export const PathLink = ({ children, onClick, path, ...rest }: Props) => {
  const navigate = useNavigate()
  const mayOpen = use(MayOpen)
  if (!mayOpen(path)) return children
  const href = `/admin-ui${path}`
  const go = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event)
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return
    event.preventDefault()
    void navigate({ href })
  }
  return (
    <a {...rest} href={href} onClick={go}>
      {children}
    </a>
  )
}

import { Link } from "@tanstack/react-router"
import { type ReactNode, use } from "react"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { MayOpen } from "./MayOpen.ts"

interface Props {
  /** An own address below `/admin-ui`. What is part of it and comes from data is encoded by the caller. */
  readonly path: string
  readonly search?: Readonly<Record<string, string>>
  readonly children: ReactNode
}

/** A link to the page of something that has an id. The name of it is foreign text, in whatever direction it is written. */
export const IdLink = ({ children, path, search }: Props) => {
  const mayOpen = use(MayOpen)
  const name = <ForeignText>{children}</ForeignText>
  if (!mayOpen(path)) return name
  return (
    <Link to={path} {...(search !== undefined && { search })}>
      {name}
    </Link>
  )
}

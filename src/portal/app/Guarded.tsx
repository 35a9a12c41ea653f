import type { ReactNode } from "react"
import { allows, useSession } from "../api/session.ts"
import { PageHeader } from "../shared/page/PageHeader.tsx"

interface Props {
  readonly scopes: ReadonlyArray<string>
  readonly title: string
  readonly children: ReactNode
}

/** Shows the page if the token has one of its scopes; else it says which one is missing. */
export const Guarded = ({ children, scopes, title }: Props) => {
  const session = useSession()
  const held = session.state === "signed-in" ? session.who.scopes : []
  if (allows(held, scopes)) return children
  return (
    <>
      <PageHeader title={title} />
      <p>
        This page needs <code>{scopes.join(" or ")}</code>. You have{" "}
        {held.length === 0 ? "no scopes" : <code>{held.join(", ")}</code>}. Ask an operator with{" "}
        <code>operators:manage</code> for a token that has it.
      </p>
    </>
  )
}

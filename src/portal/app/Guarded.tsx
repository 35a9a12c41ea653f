import type { ReactNode } from "react"
import { allows, useSession } from "../api/session.ts"
import { PageHeader } from "../shared/page/PageHeader.tsx"
import type { Guard } from "./menu.ts"

interface Props {
  readonly guards: ReadonlyArray<Guard>
  readonly children: ReactNode
}

/** Shows the page if the token has one of the scopes of each guard; else it says which one is missing. */
export const Guarded = ({ children, guards }: Props) => {
  const session = useSession()
  const held = session.state === "signed-in" ? session.who.scopes : []
  const missing = guards.find(({ scopes }) => !allows(held, scopes))
  if (missing === undefined) return children
  return (
    <>
      <PageHeader title={missing.label} />
      <p>
        This page needs <code>{missing.scopes.join(" or ")}</code>. You have{" "}
        {held.length === 0 ? "no scopes" : <code>{held.join(", ")}</code>}. Ask an operator with{" "}
        <code>operators:manage</code> for a token that has it.
      </p>
    </>
  )
}

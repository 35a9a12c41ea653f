import { useAllowed } from "../../api/session.ts"
import { LinkButton } from "../../shared/links/LinkButton.tsx"

/** Leads to the import of a list, for tokens that may import one. */
export const ImportList = () =>
  useAllowed("services:update") && (
    <LinkButton path="/studio" search={{ tab: "registry" }}>
      Import a list
    </LinkButton>
  )

import type { ReactNode } from "react"
import { PageHeader } from "./PageHeader.tsx"
import { Panel } from "./Panel.tsx"
import type { PartQuery } from "./PartQuery.ts"

interface Props {
  readonly title: string
  readonly query: PartQuery
  /** Said if the server knows no such object. */
  readonly missing: ReactNode
}

/**
 * The page of one object while the object is loading, could not be read, or does not exist. The page says so once, and not
 * in each part.
 */
export const UnreadPage = ({ missing, query, title }: Props) => (
  <>
    <PageHeader title={title} />
    {query.error?.status === 404 ? (
      missing
    ) : (
      <Panel query={query} height={420}>
        {null}
      </Panel>
    )}
  </>
)

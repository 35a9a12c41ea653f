import { Skeleton } from "@mantine/core"
import { lazy, Suspense } from "react"

/** What compares JSON arrives with the first difference that is shown. */
const DiffTree = lazy(() => import("./DiffTree.tsx"))

interface Props {
  readonly before: unknown
  readonly after: unknown
  /** What is compared, for readers of the screen. */
  readonly label: string
}

/** The members that differ between two JSON values, with their place. */
export const JsonDiff = (props: Props) => (
  <Suspense fallback={<Skeleton height={60} />}>
    <DiffTree {...props} />
  </Suspense>
)

import { Skeleton } from "@mantine/core"
import { laterFile, useLaterPart } from "../../api/laterFile.ts"

/** What compares JSON arrives with the first difference that is shown. */
const diffTree = laterFile(() => import("./DiffTree.tsx"))

interface Props {
  readonly before: unknown
  readonly after: unknown
  /** What is compared, for readers of the screen. */
  readonly label: string
}

/** The members that differ between two JSON values, with their place. */
export const JsonDiff = (props: Props) => {
  const DiffTree = useLaterPart(diffTree)?.default
  return DiffTree === undefined ? <Skeleton height={60} /> : <DiffTree {...props} />
}

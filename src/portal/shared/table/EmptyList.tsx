import { Button, Group } from "@mantine/core"
import type { ReactNode } from "react"
import { useTextSearch } from "../../address/search.ts"
import { LongerRange } from "../links/LongerRange.tsx"
import { Empty } from "../page/Empty.tsx"

interface Props {
  /** The filters of the list, by their names in the address. */
  readonly filters: ReadonlyArray<{ readonly name: string }>
  /** The sentence for a list whose filters leave no row. */
  readonly unmatched: ReactNode
  /** The list has the rows of the range of the top bar, so a longer range may have some. */
  readonly isOfRange?: boolean
  /** Shown if no filter is set. */
  readonly children: ReactNode
}

/** Shown instead of the rows of a list. It clears the filters if some are set. */
export const EmptyList = ({ children, filters, isOfRange = false, unmatched }: Props) => {
  const { change, text } = useTextSearch()
  const set = filters.filter(({ name }) => text(name) !== undefined)
  if (set.length === 0) return children
  return (
    <Empty
      action={
        <Group gap="xs" justify="center">
          <Button
            variant="default"
            onClick={() => change(Object.fromEntries(set.map(({ name }) => [name, undefined])))}
          >
            Clear the filters
          </Button>
          {isOfRange && <LongerRange />}
        </Group>
      }
    >
      {unmatched}
    </Empty>
  )
}

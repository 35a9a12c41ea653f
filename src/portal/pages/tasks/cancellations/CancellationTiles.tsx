import type { CancellationJob } from "../../../api/TaskTypes.ts"
import type { PartQuery } from "../../../shared/page/PartQuery.ts"
import { Tile, Tiles } from "../../../shared/page/Tile.tsx"
import { countText } from "../../../shared/words/format.ts"
import { isOver } from "./cancellation.ts"

interface Props {
  readonly query: PartQuery
  readonly job: CancellationJob | undefined
}

/** Counts the tasks of a cancellation by their outcome. */
export const CancellationTiles = ({ job, query }: Props) => {
  const text = (count: number | undefined) => (count === undefined ? undefined : countText(count))
  return (
    <Tiles>
      <Tile label="Tasks" query={query} value={text(job?.total)} detail={job && totalDetail(job)} />
      <Tile label="Cancelled" query={query} value={text(job?.cancelled)} detail="their workers have said so" />
      <Tile label="No answer yet" query={query} value={text(job?.requested)} detail="asked for, no word of a worker" />
      <Tile label="Had ended" query={query} value={text(job?.ended)} detail="there was nothing to cancel" />
      {job !== undefined && job.withdrawn > 0 && (
        <Tile label="Withdrawn" query={query} value={text(job.withdrawn)} detail="taken back: they go on" />
      )}
      <Tile label="Failed" query={query} value={text(job?.failed)} detail="the reasons are below" />
      <Tile
        label="Not asked for"
        query={query}
        value={text(job?.remaining)}
        detail={job && (job.remaining === 0 ? "none is left" : isOver(job) ? "they go on" : "still to come")}
      />
    </Tiles>
  )
}

const totalDetail = ({ asked_before, truncated }: CancellationJob): string => {
  const before = asked_before === 0 ? "" : `${countText(asked_before)} were asked for before`
  const more = truncated ? "more may match: cancel again for the rest" : ""
  return [more, before].filter((part) => part !== "").join("; ")
}

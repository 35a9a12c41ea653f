import type { UseQueryResult } from "@tanstack/react-query"
import type { ApiError } from "../../../api/ApiError.ts"
import type { DeadLetterGroup, GroupPage as Groups } from "../../../api/TaskTypes.ts"
import { Sparkline } from "../../../shared/charts/Sparkline.tsx"
import { Tile, Tiles } from "../../../shared/page/Tile.tsx"
import { Count } from "../../../shared/words/Amounts.tsx"
import { When } from "../../../shared/words/When.tsx"

export const mostGroups = 200

/** The group may be among those that were not read. */
export const isBeyond = (read: Groups | undefined): boolean => read !== undefined && read.next_cursor !== null

export const notAmong = `Not known: the group is not among the ${mostGroups} that have the latest letters.`

/** A cause that is older than the release that runs now is no fault of that release. */
export const versionText = ({ first_version, last_version }: DeadLetterGroup): string => {
  if (first_version === null || last_version === null) return ""
  return first_version === last_version
    ? `new with version ${first_version}`
    : `version ${first_version}: seen before version ${last_version}`
}

/** The same in a column of a list. */
export const shortVersionText = ({ first_version, last_version }: DeadLetterGroup): string => {
  if (first_version === null || last_version === null) return "–"
  return first_version === last_version ? `new with ${first_version}` : `older than ${last_version}`
}

interface TilesProps {
  readonly group: DeadLetterGroup | undefined
  readonly groups: UseQueryResult<Groups, ApiError>
}

/** The tiles show how many letters of a group are open, and since when. */
export const GroupTiles = ({ group, groups }: TilesProps) => {
  const absent = isBeyond(groups.data) ? "not known" : "–"
  return (
    <Tiles>
      <Tile
        label="Open"
        query={groups}
        value={group === undefined ? isBeyond(groups.data) ? "not known" : 0 : <Count of={group.count} short />}
      />
      <Tile
        label="First seen"
        query={groups}
        value={group === undefined ? absent : <When at={group.first_seen_at} />}
        detail={group !== undefined && versionText(group)}
      />
      <Tile label="Last seen" query={groups} value={group === undefined ? absent : <When at={group.last_seen_at} />} />
      <Tile
        label="Last 24 h, by hour"
        query={groups}
        value={
          group === undefined ? (
            absent
          ) : (
            <Sparkline values={group.trend.counts} label={`At most ${Math.max(...group.trend.counts)} in an hour`} />
          )
        }
      />
    </Tiles>
  )
}

/** An edit of more places than this is told by the first ones. */
const maxPaths = 50

/** A longer path is cut, because the names of members may have any length. */
const maxPathLength = 200

/** PostgreSQL, which keeps the paths in the audit log, refuses a NUL and half of a character in JSON. */
const shown = (path: string): string => path.slice(0, maxPathLength).toWellFormed().replaceAll("\0", "\u{fffd}")

/** A difference further inside is told by the path down to here. */
const maxDepth = 32

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members => typeof value === "object" && value !== null

/** Returns the paths at which two JSON values differ, such as `payload.order.id`, and none of the values. */
export const changedPaths = (before: unknown, after: unknown): ReadonlyArray<string> =>
  differing(before, after, []).slice(0, maxPaths).map(shown)

const differing = (before: unknown, after: unknown, path: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (
    path.length === maxDepth ||
    !isMembers(before) ||
    !isMembers(after) ||
    Array.isArray(before) !== Array.isArray(after)
  )
    return isSame(before, after) ? [] : [path.length === 0 ? "body" : path.join(".")]
  return Object.keys({ ...before, ...after })
    .sort()
    .flatMap((name) => differing(before[name], after[name], [...path, name]))
}

/** Values that are nested so deep that they cannot be written count as different. */
const isSame = (before: unknown, after: unknown): boolean => {
  try {
    return JSON.stringify(before) === JSON.stringify(after)
  } catch {
    return false
  }
}

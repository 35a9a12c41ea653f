/** An edit of more places than this is told by the first ones. */
const maxPaths = 50

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members => typeof value === "object" && value !== null

/** Returns the paths at which two JSON values differ, such as `payload.order.id`, and none of the values. */
export const changedPaths = (before: unknown, after: unknown): ReadonlyArray<string> =>
  differing(before, after, "").slice(0, maxPaths)

const differing = (before: unknown, after: unknown, path: string): ReadonlyArray<string> => {
  if (!isMembers(before) || !isMembers(after) || Array.isArray(before) !== Array.isArray(after))
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [path === "" ? "body" : path]
  return Object.keys({ ...before, ...after })
    .sort()
    .flatMap((name) => differing(before[name], after[name], path === "" ? name : `${path}.${name}`))
}

import { create, type Delta } from "jsondiffpatch"

/** One line of a difference. `path` names where it stands; the lines of one object stand together. */
export interface DiffLine {
  readonly path: ReadonlyArray<string>
  readonly kind: "added" | "removed" | "changed"
  readonly before: unknown
  readonly after: unknown
}

/** Objects in lists are told apart by what people know them by. */
const identityOf = (item: object, place?: number): string => {
  const members: Readonly<Record<string, unknown>> = { ...item }
  const { id, model, name, route } = members
  const known = [id, name, model, route].find((value) => typeof value === "string")
  return typeof known === "string" ? known : `#${place ?? 0}`
}

const differ = create({ objectHash: identityOf, arrays: { detectMove: false } })

/** Returns what differs between two JSON values, in the order of their members. */
export const linesOf = (before: unknown, after: unknown): ReadonlyArray<DiffLine> =>
  walk(differ.diff(before ?? null, after ?? null), [], before, after)

const walk = (delta: Delta, path: ReadonlyArray<string>, before: unknown, after: unknown): ReadonlyArray<DiffLine> => {
  if (delta === undefined) return []
  if (Array.isArray(delta)) return [leafOf(delta, path)]
  const isList = Reflect.get(delta, "_t") === "a"
  return Object.entries(delta).flatMap(([key, inner]: readonly [string, Delta]) => {
    if (!isList) return walk(inner, [...path, key], memberOf(before, key), memberOf(after, key))
    if (key === "_t") return []
    // in lists, an underscore stands before the places of the list before
    const isOfBefore = key.startsWith("_")
    const place = Number(isOfBefore ? key.slice(1) : key)
    const item = memberOf(isOfBefore ? before : after, place)
    const name = typeof item === "object" && item !== null ? identityOf(item, place) : String(place)
    return walk(inner, [...path, name], item, item)
  })
}

/** `[after]` is added, `[before, after]` changed, and `[before, 0, 0]` removed. */
const leafOf = (delta: ReadonlyArray<unknown>, path: ReadonlyArray<string>): DiffLine => {
  const [first, second] = delta
  if (delta.length === 1) return { path, kind: "added", before: undefined, after: first }
  return delta.length === 2
    ? { path, kind: "changed", before: first, after: second }
    : { path, kind: "removed", before: first, after: undefined }
}

const memberOf = (value: unknown, name: string | number): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined

import { isObject } from "./hidden.ts"

/** More members are not compared: the browser would stand still, and nobody reads them. */
const mostMembers = 2_000

/** The members of a JSON value by their paths: `{"payload.items[0].id": 7}`. What is empty is a value of its own. */
export const flatten = (value: unknown): Readonly<Record<string, unknown>> => {
  const found: Record<string, unknown> = {}
  let count = 0
  const visit = (path: string, one: unknown): void => {
    if (count >= mostMembers) return
    if (Array.isArray(one) && one.length > 0) {
      for (const [place, item] of one.entries()) visit(`${path}[${place}]`, item)
    } else if (isObject(one) && Object.keys(one).length > 0) {
      for (const [name, member] of Object.entries(one)) visit(path === "" ? name : `${path}.${name}`, member)
    } else {
      count++
      found[path === "" ? "(whole)" : path] = one
    }
  }
  visit("", value)
  return found
}

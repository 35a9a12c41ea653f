/** The members of `after` that differ from `before`: what a PATCH sends. */
export const changedOf = <Fields extends object>(before: Partial<Fields>, after: Fields): Partial<Fields> => {
  const changed: Partial<Fields> = {}
  for (const name in after) {
    if (JSON.stringify(after[name]) !== JSON.stringify(before[name])) changed[name] = after[name]
  }
  return changed
}

/** The members of `fields` with these names: what a patch that replaces them sends to bring them back. */
export const partOf = <Fields extends object>(fields: Fields, names: ReadonlyArray<string>): Partial<Fields> => {
  const part: Partial<Fields> = {}
  for (const name in fields) {
    if (names.includes(name)) part[name] = fields[name]
  }
  return part
}

/** The fields that a patch sets, as they were: what takes it back. Objects are patched by their members. */
export const formerOf = (before: object, patch: object) =>
  Object.fromEntries(
    Object.entries(patch).map(([name, part]) => {
      const was = Reflect.get(before, name)
      return [name, isObject(part) && isObject(was) ? membersOf(was, part) : was]
    })
  )

const membersOf = (before: JsonObject, patch: JsonObject) =>
  Object.fromEntries(Object.keys(patch).map((name) => [name, before[name]]))

export type Json = null | boolean | number | string | ReadonlyArray<Json> | JsonObject
export interface JsonObject {
  readonly [name: string]: Json
}

/** Reads a text of JSON. `undefined` where it is none. */
export const jsonOf = (text: string): { readonly value: Json } | undefined => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

export const objectOf = (text: string): JsonObject | undefined => {
  const read = jsonOf(text)
  return read !== undefined && isObject(read.value) ? read.value : undefined
}

const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

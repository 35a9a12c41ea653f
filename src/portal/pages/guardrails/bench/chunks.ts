/** Cuts a text where it has a `|`, or else after each word, as models write them. */
export const chunksOf = (text: string): ReadonlyArray<string> => {
  const cut = text.includes("|") ? text.split("|") : (text.match(/\s*\S+(?:\s+$)?/g) ?? [text])
  return cut.filter((chunk) => chunk !== "")
}

/** The text of the first message or choice of a body. */
export const contentOf = (body: unknown): string => {
  const [item] = listAt(body, "messages") ?? listAt(body, "choices") ?? []
  const message = memberOf(item, "message") ?? item
  const content = memberOf(message, "content")
  return typeof content === "string" ? content : (JSON.stringify(body, null, 2) ?? "")
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined

const listAt = (value: unknown, name: string): ReadonlyArray<unknown> | undefined => {
  const list = memberOf(value, name)
  return Array.isArray(list) ? list : undefined
}

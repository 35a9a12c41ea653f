/** The members of `after` that differ from `before`: what a PATCH sends. */
export const changedOf = <Fields extends object>(before: Partial<Fields>, after: Fields): Partial<Fields> => {
  const changed: Partial<Fields> = {}
  for (const name in after) {
    if (JSON.stringify(after[name]) !== JSON.stringify(before[name])) changed[name] = after[name]
  }
  return changed
}

/** Reads a text of JSON. `undefined` where it is none. */
export const jsonOf = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

export const objectOf = (text: string): Readonly<Record<string, unknown>> | undefined => {
  const read = jsonOf(text)
  return typeof read?.value === "object" && read.value !== null && !Array.isArray(read.value)
    ? { ...read.value }
    : undefined
}

export const prettyOf = (value: unknown): string => JSON.stringify(value, null, 2) ?? ""

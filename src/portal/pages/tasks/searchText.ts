/** One part of a search: `status:failed`, `attr.book=42`, or a text without a name. */
export interface SearchPart {
  readonly name: string | undefined
  readonly value: string
  /** Where it stands in the text. */
  readonly from: number
  readonly to: number
}

/** A name, `:` or `=`, and a word or a quoted text; or a word or quoted text alone. */
const part = /([\w.-]+)[:=](?=\s|$)|(?:([\w.-]+)[:=])?(?:"([^"]*)"?|(\S+))/g
const mostText = 2_000

export const partsOf = (text: string): ReadonlyArray<SearchPart> =>
  [...text.slice(0, mostText).matchAll(part)].map(({ 0: whole, 1: alone, 2: name, 3: quoted, 4: word, index }) => ({
    name: alone ?? name,
    value: quoted ?? word ?? "",
    from: index,
    to: index + whole.length
  }))

/** The query of the API: the named parts by their names, the others together as `q`. */
export const queryOf = (text: string): Readonly<Record<string, string>> => {
  const query: Record<string, string> = {}
  const words: Array<string> = []
  for (const { name, value } of partsOf(text)) {
    if (name === undefined || isAddress(name, value)) words.push(name === undefined ? value : `${name}:${value}`)
    else if (value !== "") query[name] = value
  }
  return words.length === 0 ? query : { ...query, q: words.join(" ") }
}

/** `https://…` is a text, although it begins like a name. */
const isAddress = (name: string, value: string): boolean => /^https?$/.test(name) && value.startsWith("//")

/** The text with a named part set to a value, or without it. */
export const withPart = (text: string, name: string, value: string | undefined): string => {
  const without = partsOf(text)
    .filter((one) => one.name === name)
    .reduceRight((rest, { from, to }) => rest.slice(0, from) + rest.slice(to), text)
    .replace(/\s+/g, " ")
    .trim()
  return value === undefined ? without : `${without} ${name}:${quoted(value)}`.trim()
}

export const quoted = (value: string): string => (/^[^\s"]+$/.test(value) ? value : `"${value.replaceAll('"', "")}"`)

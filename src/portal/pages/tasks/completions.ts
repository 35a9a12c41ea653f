import { quoted } from "./searchText.ts"

/** The values that the page knows for a name, such as the statuses of its counts. */
export type KnownValues = Readonly<Record<string, ReadonlyArray<string>>>

const mostShown = 8

/** The whole texts that the word before the end can become. The server knows which names and values there are. */
export const completionsOf = (text: string, known: KnownValues): ReadonlyArray<string> => {
  const start = lastPartOf(text)
  const before = text.slice(0, text.length - start.length)
  const [, name, value = ""] = /^([\w.-]+)[:=](.*)$/.exec(start) ?? []
  const wanted = value.replace(/^"/, "").toLowerCase()
  if (name !== undefined)
    return (known[name] ?? [])
      .filter((one) => one.toLowerCase().includes(wanted) && one !== value)
      .slice(0, mostShown)
      .map((one) => `${before}${name}:${quoted(one)} `)
  return Object.keys(known)
    .filter((one) => one.startsWith(start.toLowerCase()))
    .slice(0, mostShown)
    .map((one) => `${before}${one}:`)
}

/** What is written since the last space that is not within quotes. */
const lastPartOf = (text: string): string => {
  let [from, isQuoted] = [0, false]
  for (const [place, character] of [...text].entries()) {
    if (character === '"') isQuoted = !isQuoted
    else if (character === " " && !isQuoted) from = place + 1
  }
  return [...text].slice(from).join("")
}

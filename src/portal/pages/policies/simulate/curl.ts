/** What a command of curl asks for, as far as a policy looks at it. */
export interface CurlRequest {
  readonly method: string
  readonly path: string
  readonly body: string | undefined
}

const longest = 100_000

/** Options of curl that take a value, so that the value is not taken for the address. */
const withValue = new Set(
  "-H --header -X --request -d --data --data-raw --data-binary --data-ascii --json --url -u --user -A --user-agent -e --referer -o --output -b --cookie -m --max-time --connect-timeout -F --form -x --proxy --cacert --cert --key --retry -w --write-out".split(
    " "
  )
)
const bodies = new Set("-d --data --data-raw --data-binary --data-ascii --json".split(" "))

/** Reads a command of curl, as people paste it. Returns a sentence if it is none. */
export const readCurl = (command: string): CurlRequest | string => {
  if (command.length > longest) return "The command is too long."
  const words = shellWords(command.trim())
  if (words === undefined) return "A quote is not closed."
  if (words[0] !== "curl") return "Paste a command that begins with curl."
  let method: string | undefined
  let address: string | undefined
  const data: Array<string> = []
  for (let at = 1; at < words.length; at++) {
    const word = words[at] ?? ""
    const { name, value } = optionOf(word)
    if (!word.startsWith("-")) address ??= word
    else if (!withValue.has(name)) continue
    else {
      const given = value ?? words[++at] ?? ""
      if (name === "-X" || name === "--request") method = given.toUpperCase()
      else if (name === "--url") address = given
      else if (bodies.has(name)) data.push(given)
    }
  }
  if (address === undefined) return "The command has no address."
  const path = pathOf(address)
  if (path === undefined) return `${address} is not an address.`
  const body = data.length === 0 ? undefined : data.join("&")
  return { method: method ?? (body === undefined ? "GET" : "POST"), path, body }
}

/** `--request=PUT` and `-XPUT` have their value with them. */
const optionOf = (word: string): { readonly name: string; readonly value?: string } => {
  if (word.startsWith("--")) {
    const end = word.indexOf("=")
    return end === -1 ? { name: word } : { name: word.slice(0, end), value: word.slice(end + 1) }
  }
  const short = word.slice(0, 2)
  return word.length > 2 && withValue.has(short) ? { name: short, value: word.slice(2) } : { name: word }
}

/** The host does not matter: it may be written as a variable. */
const pathOf = (address: string): string | undefined => {
  const withoutHost = address.replace(/^(https?:\/\/)?[^/?]*/, "")
  return withoutHost.startsWith("/") ? withoutHost : undefined
}

const blank = new Set([" ", "\t", "\n", "\r"])

/** Splits a command as a shell does. `undefined`: a quote is not closed. */
const shellWords = (text: string): ReadonlyArray<string> | undefined => {
  const words: Array<string> = []
  let word: string | undefined
  let quote = ""
  for (let at = 0; at < text.length; at++) {
    const letter = text[at] ?? ""
    const next = text[at + 1] ?? ""
    if (quote === "'") {
      if (letter === "'") quote = ""
      else word += letter
    } else if (letter === "\\" && (quote === "" || '"\\$`\n'.includes(next))) {
      at++
      // a line that goes on
      if (next !== "\n") word = (word ?? "") + next
    } else if (quote === '"') {
      if (letter === '"') quote = ""
      else word += letter
    } else if (letter === "'" || letter === '"') {
      quote = letter
      word ??= ""
    } else if (blank.has(letter)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? "") + letter
  }
  if (quote !== "") return undefined
  return word === undefined ? words : [...words, word]
}

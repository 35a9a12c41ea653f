/** Random numbers that depend on the seed alone (xorshift32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0 || 1
  }

  below(limit: number): number {
    this.#state ^= this.#state << 13
    this.#state ^= this.#state >>> 17
    this.#state ^= this.#state << 5
    return (this.#state >>> 0) % limit
  }

  of<A>(choices: readonly [A, ...ReadonlyArray<A>]): A {
    return choices[this.below(choices.length)] ?? choices[0]
  }
}

const words = [
  "hello",
  "a",
  "Write to",
  "at",
  "order",
  "x",
  "café",
  "😀",
  "\n",
  "…",
  "1",
  "22",
  "3.5",
  "v1.2.3"
] as const
const values = [
  "jane@example.com",
  "a.b+c@mail.example.org",
  "123-45-6789",
  "555-123-4567",
  "+1 (555) 123-4567",
  "+49 30 1234 5678",
  "+49 (0)30/12345678",
  "1 (555) 123-4567",
  "(020) 7946 0958",
  "5551234567",
  "4111 1111 1111 1111",
  "4111  1111\t1111  1111",
  "4111 - 1111 - 1111 - 1111",
  "GB29 NWBK 601613 31926819",
  "john&#0064example&#x2e;com",
  "+1%20555&nbsp;123&#45;4567",
  "DE89 3704 0044 0532 0130 00",
  "203.0.113.7",
  "web-10.1.2.3-beta",
  "ghp_a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5a1B2c3",
  "EMP-12345"
] as const
const nearMisses = [
  "jane@",
  "@example.com",
  "a@b",
  "123-45-678",
  "555-123",
  "+1 5",
  "1 (",
  "(12) 3",
  "555-123-4567....1",
  "[EMAIL_",
  "[EMAIL_1",
  "[PHONE_x]",
  "resp_67cc9641234567890bb6",
  "550e8400-e29b-41d4-a716-446655440000",
  "react@18.2.0",
  "git@github.com:a/b",
  "logo@2x.png",
  "A@B.T",
  "4111 1111 11",
  "DE89 3704",
  "203.0.1",
  "ghp_a1B2",
  "EMP-1"
] as const
const placeholders = ["[EMAIL_1]", "[EMAIL_2]", "[SSN_1]", "[PHONE_9]"] as const
const links = [
  "https://evil.example/?q=",
  '<img src="http://e.example/',
  "www.e.example/",
  "![x](https://e.example/?a= ",
  "[x](sms:1?body=",
  "/&#47;e.example",
  ">",
  ")"
] as const
const separators = [
  " ",
  ", ",
  ". ",
  "",
  "",
  ": ",
  "(",
  ")",
  '"',
  "\u200b",
  "/",
  "=",
  "-",
  "\\n",
  "\\u0040",
  "  ",
  "\t",
  "+",
  " - ",
  "%20",
  "&nbsp;",
  "&#45",
  "\u0000",
  "\ud800"
] as const

const part = (random: Random): string => {
  switch (random.below(10)) {
    case 0:
    case 1:
    case 2:
      return random.of(words)
    case 3:
    case 4:
    case 5:
      return random.of(values)
    case 6:
    case 7:
      return random.of(nearMisses)
    case 8:
      return random.of(placeholders)
    default:
      return random.of(links)
  }
}

/** A text of values, of what nearly is one, of placeholders, and of what may stand around them. */
export const randomText = (random: Random, maxParts: number): string => {
  let text = ""
  for (let count = random.below(maxParts + 1); count > 0; count--) text += part(random) + random.of(separators)
  return text
}

const jsonItem = (random: Random, depth: number): string => {
  switch (random.below(depth > 1 ? 3 : 5)) {
    case 0:
      return random.of(["5551234567", "-5551234567.5", "1e5", "12", "5551234567,5551234567"])
    case 1:
    case 2:
      return JSON.stringify(randomText(random, 3))
    case 3:
      return JSON.stringify(randomJson(random, depth + 1))
    default:
      return jsonValue(random, depth + 1)
  }
}

const jsonValue = (random: Random, depth: number): string => {
  const items = Array.from({ length: 1 + random.below(3) }, () => jsonItem(random, depth))
  const comma = random.of([",", ", "])
  return random.below(2) === 0 ? `[${items.join(comma)}]` : `{${items.map((item) => `"a":${item}`).join(comma)}}`
}

/** A text that is JSON, that has JSON in its strings, or that is JSON up to some place only. */
export const randomJson = (random: Random, depth = 0): string => {
  const json = jsonValue(random, depth)
  switch (random.below(6)) {
    case 0:
      return json.slice(0, random.below(json.length)) + randomText(random, 2)
    case 1:
      return `${json}${random.of([" ", "\n", ""])}${randomText(random, 2)}`
    case 2:
      return `\`\`\`json\n${json}\n\`\`\`\n${randomText(random, 1)}`
    default:
      return json
  }
}

/** Cuts a text anywhere, also within a surrogate pair. */
export const randomPieces = (random: Random, text: string): ReadonlyArray<string> => {
  const longest = random.of([1, 2, 5, 20, 100])
  const pieces: Array<string> = []
  for (let at = 0; at < text.length; ) {
    const next = at + 1 + random.below(longest)
    pieces.push(text.slice(at, next))
    at = next
  }
  return pieces
}

/** Members with such names hold secrets in most programs. */
const secretNames = [
  "password",
  "passphrase",
  "passwd",
  "secret",
  "token",
  "authorization",
  "api_key",
  "apikey",
  "private_key",
  "privatekey",
  "cookie",
  "credential"
]

const hiddenText = "(hidden)"

export interface Hidden {
  readonly value: unknown
  /** The names because of which something is hidden. */
  readonly names: ReadonlyArray<string>
  readonly count: number
}

/** Hides texts that are secrets by their names or the names around them. Numbers such as `max_tokens` stay. */
export const withoutSecrets = (value: unknown): Hidden => {
  const names = new Set<string>()
  let count = 0
  const visit = (one: unknown, because: string | undefined): unknown => {
    if (typeof one === "string") {
      if (because === undefined || one === "") return one
      names.add(because)
      count++
      return hiddenText
    }
    if (Array.isArray(one)) return one.map((item) => visit(item, because))
    if (!isObject(one)) return one
    return Object.fromEntries(
      Object.entries(one).map(([name, member]) => [name, visit(member, because ?? (isSecret(name) ? name : undefined))])
    )
  }
  return { value: visit(value, undefined), names: [...names], count }
}

const isSecret = (name: string): boolean => {
  const plain = name.toLowerCase().replaceAll("-", "_")
  return secretNames.some((secret) => plain.includes(secret))
}

/** The wrappers of long numbers are values. */
export const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !(Object.isFrozen(value) && "rawJSON" in value)

import type { Schema } from "effect"

/** `max_tokens` and the like end otherwise, and name no secret. */
const secretName =
  /(?:^|[^a-z])(?:token|secret|password|passwd|passphrase|authorization|credentials?|bearer|(?:api|access|private|secret|auth)[^a-z]?key)$/

const looksSecret = (name: string): boolean => secretName.test(name.replace(/([a-z\d])([A-Z])/g, "$1_$2").toLowerCase())

/** The path of a member whose name says that it holds a secret, and that holds text. */
export const findSecretMember = (config: { readonly [name: string]: Schema.Json }): string | undefined => {
  const pending: Array<readonly [path: string, secret: boolean, value: Schema.Json]> = [["", false, config]]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [path, secret, value] = next
    if (typeof value === "string") {
      if (secret && value !== "") return path
    } else if (Array.isArray(value)) {
      for (const element of value) pending.push([path, secret, element])
    } else if (typeof value === "object" && value !== null) {
      for (const [name, member] of Object.entries(value)) {
        pending.push([path === "" ? name : `${path}.${name}`, looksSecret(name), member])
      }
    }
  }
  return undefined
}

/** The parameter of a URL's query whose name says that it holds a secret. */
export const findSecretParameter = (url: string): string | undefined =>
  [...new URL(url).searchParams].find(([name, value]) => value !== "" && looksSecret(name))?.[0]

import type { Schema } from "effect"

/** Names of limits such as `max_tokens` do not match, because they are plural. */
const secretName =
  /(?:^|[^a-z])(?:token|secret|password|passwd|passphrase|authorization|credentials?|bearer|(?:api|access|private|secret|auth)[^a-z]?key)$/

const looksSecret = (name: string): boolean => secretName.test(name.replace(/([a-z\d])([A-Z])/g, "$1_$2").toLowerCase())

/** Returns the path of a non-empty text whose member name looks like the name of a secret. */
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

export const findSecretParameter = (url: string): string | undefined =>
  [...new URL(url).searchParams].find(([name, value]) => value !== "" && looksSecret(name))?.[0]

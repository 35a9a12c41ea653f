import { isBuiltin } from "node:module"

const legal = /^[a-z0-9][a-z0-9._-]{0,213}$/
const reserved = ["node_modules", "favicon.ico"]

/** Returns a sentence if a project with these dependencies cannot have this name. */
export const mistakeIn = (name: string, dependencies: ReadonlyArray<string>): string | undefined => {
  if (!legal.test(name)) {
    const similar = similarTo(name)
    return `"${name}" cannot be the name of an npm package, which has at most 214 lower-case letters, digits, "-", "." and "_" and begins with a letter or a digit.${legal.test(similar) ? ` Name the folder "${similar}", for example.` : " Name the folder differently."}`
  }
  if (isBuiltin(name) || reserved.includes(name)) {
    return `"${name}" cannot be the name of an npm package, because Node or npm uses it. Name the folder differently.`
  }
  if (dependencies.includes(name)) {
    return `The project cannot be named "${name}", because it depends on the package of that name. Name the folder differently.`
  }
  return undefined
}

/** Without marks, in lower case, and with a "-" for everything else that is not legal. */
const similarTo = (name: string): string =>
  name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+|-+$/g, "")
    .slice(0, 214)

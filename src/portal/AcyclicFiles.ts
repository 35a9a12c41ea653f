import type { Plugin } from "vite"

/**
 * Refuses a build whose files import each other in a circle: a module of one would be evaluated before what it needs
 * from the other, and no page would open.
 */
export const acyclicFiles = (): Plugin => ({
  name: "acyclic-files",
  apply: "build",
  generateBundle: (_, bundle) => {
    const seen = new Set<string>()
    const visit = (name: string, path: ReadonlyArray<string>) => {
      const circle = path.indexOf(name)
      if (circle >= 0)
        throw new Error(`The built files import each other in a circle: ${[...path.slice(circle), name].join(" → ")}`)
      const file = bundle[name]
      if (seen.has(name) || file?.type !== "chunk") return
      for (const imported of file.imports) visit(imported, [...path, name])
      seen.add(name)
    }
    for (const name of Object.keys(bundle)) visit(name, [])
  }
})

import { dirname, join } from "node:path"
import type { Plugin } from "vite"

/** The element of the page that names the files. */
const manifestElement = /(<script type="application\/json" id="application">)[^<]*(?=<)/

/** A route in a file of routes: its layout, its path, and the module of its page. */
const routePattern = /getParentRoute: \(\) => (\w+),\s*path: "([^"]*)"[\s\S]*?import\("([^"]+)"\)/g
const routesFile = /\/portal\/pages\/[^/]+\/routes\.ts$/
/** A page that has a chart draws it as soon as it is there. */
const charts = /\/shared\/charts\//
const layoutPaths: Readonly<Record<string, string>> = { operatorLayout: "", holderLayout: "/my" }

/** The built files by their numbers: those of the application, and those of each page. */
interface PreloadManifest {
  readonly files: ReadonlyArray<string>
  readonly application: ReadonlyArray<number>
  /** By its path, such as `/keys/$id`. */
  readonly pages: Readonly<Record<string, ReadonlyArray<number>>>
}

/**
 * Names the files that the application and each of its pages consist of, so that the page of somebody who is signed in
 * asks for all that it needs at once. The sign-in page does without them.
 */
export const applicationFiles = (): Plugin => {
  const modules = new Map<string, string>()
  let base = "/"
  return {
    name: "application-files",
    apply: "build",
    enforce: "pre",
    configResolved: (config) => {
      base = config.base
    },
    transform: (code, id) => {
      if (!routesFile.test(id)) return
      const found = [...code.matchAll(routePattern)]
      if (found.length !== code.split("createRoute(").length - 1) throw new Error(`${id} has a route of another form`)
      for (const [, layout = "", path = "", page = ""] of found) {
        const above = layoutPaths[layout]
        if (above === undefined) throw new Error(`${id} has a route in the unknown layout ${layout}`)
        const fullPath = `${above}/${path}`.replace(/\/+/g, "/").replace(/(.)\/$/, "$1")
        modules.set(fullPath, join(dirname(id), page))
      }
    },
    transformIndexHtml: {
      order: "post",
      handler: (html, { bundle = {} }) => {
        const chunkOf = (name: string) => {
          const file = bundle[name]
          return file?.type === "chunk" ? file : undefined
        }
        const filesOf = (module: string, known: ReadonlySet<string>): ReadonlySet<string> => {
          const found = new Set<string>()
          const chartChunks = new Set<string>()
          const collect = (name: string, hasStyles: boolean) => {
            const chunk = chunkOf(name)
            if (chunk === undefined || found.has(name) || known.has(name)) return
            found.add(name)
            const styles = hasStyles ? chunk.viteMetadata?.importedCss : undefined
            for (const css of styles ?? []) if (!known.has(css)) found.add(css)
            for (const imported of chunk.imports) collect(imported, hasStyles)
            for (const later of chunk.dynamicImports)
              if (charts.test(chunkOf(later)?.facadeModuleId ?? "")) chartChunks.add(later)
          }
          const first = Object.keys(bundle).find((name) => chunkOf(name)?.facadeModuleId?.endsWith(module) === true)
          if (first === undefined) throw new Error(`The build has no file of ${module}`)
          collect(first, true)
          // Last of all, because the page is there without them, and without their styles: they wait until the browser is
          // idle, and of styles that wait for seconds Chromium says in the console that they were asked for in vain.
          for (const chunk of chartChunks) collect(chunk, false)
          return found
        }
        const inHtml = new Set(Object.keys(bundle).filter((name) => html.includes(base + name)))
        const application = filesOf("/portal/App.tsx", inHtml)
        const known = new Set([...inHtml, ...application])
        const pages = [...modules].map(([path, module]) => [path, filesOf(module, known)] as const)
        const all = [...new Set([...application, ...pages.flatMap(([, files]) => [...files])])]
        const indexesOf = (files: ReadonlySet<string>) => [...files].map((name) => all.indexOf(name))
        const manifest: PreloadManifest = {
          files: all.map((name) => base + name),
          application: indexesOf(application),
          // a path with a parameter comes after those that it would match too
          pages: Object.fromEntries(
            pages
              .toSorted(([a], [b]) => a.split("$").length - b.split("$").length)
              .map(([path, files]) => [path, indexesOf(files)])
          )
        }
        return html.replace(manifestElement, (_, start: string) => start + JSON.stringify(manifest))
      }
    }
  }
}

import type { Plugin } from "vite"

/** The element of the page that names the files of the application. */
const place = /(<script type="application\/json" id="application">)[^<]*(?=<)/

/**
 * Names the files that the application consists of, so that the page of somebody who is signed in asks for all of them at
 * once. The sign-in page does without them.
 */
export const applicationFiles = (): Plugin => {
  let base = "/"
  return {
    name: "application-files",
    apply: "build",
    configResolved: (config) => {
      base = config.base
    },
    transformIndexHtml: {
      order: "post",
      handler: (html, { bundle = {} }) => {
        const found = new Set<string>()
        const collect = (name: string) => {
          const chunk = bundle[name]
          if (chunk?.type !== "chunk" || found.has(name)) return
          found.add(name)
          for (const css of chunk.viteMetadata?.importedCss ?? []) found.add(css)
          for (const imported of chunk.imports) collect(imported)
        }
        const app = Object.values(bundle).find(
          (file) => file.type === "chunk" && file.facadeModuleId?.endsWith("/portal/App.tsx") === true
        )
        if (app === undefined) throw new Error("The build has no application")
        collect(app.fileName)
        const addresses = [...found].map((name) => base + name).filter((address) => !html.includes(address))
        return html.replace(place, (_, start: string) => start + JSON.stringify(addresses))
      }
    }
  }
}

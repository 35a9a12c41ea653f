import { join } from "node:path"
import { fileURLToPath } from "node:url"
import manifest from "../package.json" with { type: "json" }

const root = fileURLToPath(new URL("..", import.meta.url))

/** The names by which users of the package import it, each with its source file. */
export const sourceOf: ReadonlyMap<string, string> = new Map(
  Object.entries(manifest.exports).flatMap(([entry, target]) =>
    typeof target === "string"
      ? []
      : [
          [
            manifest.name + entry.slice(1),
            join(root, target.default.replace("/dist/", "/").replace(/\.js$/, ".ts"))
          ] as const
        ]
  )
)

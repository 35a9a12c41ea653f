import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import manifest from "../../package.json" with { type: "json" }

const folder = join(import.meta.dirname, "api")

/** `svc-runtime/layers/Teardown` has its report in `layers/Teardown.md`. */
const fileOf = (entry: string): string => `${entry.slice(manifest.name.length + 1) || "index"}.md`

/** Returns the names of the report files of entries that do not exist. */
export const others = (entries: Iterable<string>): ReadonlyArray<string> => {
  const known = new Set([...entries].map(fileOf))
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".md") && !known.has(name)
  )
}

/** Returns the stored report of an entry, or an empty text. */
export const stored = (entry: string): string => {
  const file = join(folder, fileOf(entry))
  return existsSync(file) ? readFileSync(file, "utf8") : ""
}

/** Replaces all stored reports. */
export const store = (reports: ReadonlyMap<string, string>): void => {
  rmSync(folder, { recursive: true, force: true })
  for (const [entry, report] of reports) {
    const file = join(folder, fileOf(entry))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, report)
  }
}

import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import manifest from "../../package.json" with { type: "json" }
import { root } from "../Guides.ts"
import { npmInstall, run } from "./InstalledPackage.ts"

/** The oldest Node that the package allows. */
export const oldest = `${manifest.engines.node.replace(">=", "")}.0`
/** The version between it and the one that runs the tests. */
export const middle = "24.21.0"

const folder = join(root, "node_modules", ".cache", "node-versions")

/** The folder of the program `node`. */
export const folderOf = (version: string): string => join(folder, "node_modules", `node-${version}`, "bin")

/** The packages of one platform contain the program itself, so that no install script has to run. */
const platform = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`

/** Installs both, unless an earlier run has done it. */
export const install = async (): Promise<void> => {
  const versions = [oldest, middle]
  if (versions.every((version) => existsSync(folderOf(version)))) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }))
  const packages = versions.map((version) => `node-${version}@npm:${platform}@${version}`)
  await run(folder, [...npmInstall, "--prefix", folder, ...packages])
}

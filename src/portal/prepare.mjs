/**
 * npm runs this after an installation in a checkout, and when it installs the package from git. Where the build's
 * tools are installed, it builds the portal and the prepared database. Elsewhere, as after `npm ci --omit=dev`, the
 * program runs without both: the pages of the portal say what is missing, and an embedded database is created.
 */
import { spawnSync } from "node:child_process"

const isInstalled = () => {
  try {
    return import.meta.resolve("vite") !== ""
  } catch {
    return false
  }
}

// `prepack` has built everything before
const isPacking = ["pack", "publish"].includes(process.env.npm_command ?? "")

if (isPacking) process.exit(0)
if (!isInstalled()) {
  process.stderr.write(
    "The portal is not built, because vite is not installed: npm ci without --omit=dev installs it.\n"
  )
  process.exit(0)
}
const { status } = spawnSync("npm run build:portal && npm run build:database", { stdio: "inherit", shell: true })
process.exit(status ?? 1)

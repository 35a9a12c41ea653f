import { execFile } from "node:child_process"
import { mkdir, open, readdir, rm, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const root = fileURLToPath(new URL("../..", import.meta.url))
const sources = join(root, "src", "portal")
const page = join(root, "dist", "portal", "index.html")
const lock = join(root, "node_modules", ".cache", "portal.lock")

/** A lock this old belongs to a process that has ended. */
const staleMs = 300_000

/** Builds the portal where a source is newer than what is built. Two workers of the tests build it once. */
export const ensure = async (): Promise<void> => {
  if (await isCurrent()) return
  await mkdir(dirname(lock), { recursive: true })
  while (!(await isLocked())) await setTimeout(200)
  try {
    if (!(await isCurrent())) await build()
  } finally {
    await rm(lock, { force: true })
  }
}

const isLocked = async (): Promise<boolean> => {
  try {
    await (await open(lock, "wx")).close()
    return true
  } catch {
    if (Date.now() - (await timeOf(lock)) > staleMs && (await timeOf(lock)) > 0) await rm(lock, { force: true })
    return false
  }
}

const build = () =>
  promisify(execFile)(
    process.execPath,
    [
      join(root, "node_modules/vite/bin/vite.js"),
      "build",
      "--config",
      "src/portal/vite.config.ts",
      "--logLevel",
      "warn"
    ],
    // vitest's own environment would make a development build
    { cwd: root, env: { ...process.env, NODE_ENV: "production" } }
  )

const isCurrent = async (): Promise<boolean> => (await timeOf(page)) > (await newest(sources))

const timeOf = async (path: string): Promise<number> =>
  stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0
  )

const newest = async (folder: string): Promise<number> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith(".md"))
  return Math.max(...(await Promise.all(files.map(({ name, parentPath }) => timeOf(join(parentPath, name))))))
}

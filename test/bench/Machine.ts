import { execFile } from "node:child_process"
import { cpus, release, totalmem } from "node:os"
import { promisify } from "node:util"
import { Effect } from "effect"

const commit = Effect.tryPromise(async () => {
  const { stdout } = await promisify(execFile)("git", ["describe", "--always", "--dirty", "--abbrev=10"])
  return stdout.trim()
}).pipe(Effect.orElseSucceed(() => "unknown"))

/** What a figure means nothing without. */
export const describe = Effect.map(commit, (commit) => {
  const cores = cpus()
  return (
    `${cores.length} cores (${cores[0]?.model ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GiB, ` +
    `Linux ${release()}, Node ${process.versions.node}; commit ${commit}; ${new Date().toISOString().slice(0, 10)}.`
  )
})

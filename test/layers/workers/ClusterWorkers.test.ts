import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { root } from "../../Guides.ts"

describe("the processes of workers", () => {
  it("end like a worker that crashed if the system has no file descriptors for their start", async () => {
    const program = `ulimit -n 256; exec "$0" test/layers/workers/StartWithoutFiles.ts`
    const { stdout } = await promisify(execFile)("sh", ["-c", program, process.execPath], { cwd: root })
    assert.deepInclude(JSON.parse(stdout), { status: 1, sentence: `spawn ${process.execPath} EMFILE` })
  })
})

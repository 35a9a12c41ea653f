import { cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { root } from "../Guides.ts"
import { end, environment } from "./InstalledPackage.ts"

describe("after an installation", () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-test-prepare-"))
  afterAll(() => rmSync(folder, { recursive: true }))

  it("a checkout without vite says that the portal is not built, and is fine", async () => {
    cpSync(join(root, "src/portal/prepare.mjs"), join(folder, "prepare.mjs"))
    const { code, errors, out } = await end(folder, ["node", "prepare.mjs"])
    assert.deepStrictEqual([code, out], [0, ""])
    assert.include(errors, "vite is not installed")
  })

  it("packing does not build the portal again", async () => {
    const env = { ...environment(), npm_command: "pack" }
    const { code, errors, out } = await end(folder, ["node", join(root, "src/portal/prepare.mjs")], env)
    assert.deepStrictEqual([code, out, errors], [0, "", ""])
  })
})

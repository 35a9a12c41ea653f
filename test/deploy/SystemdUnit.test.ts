import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Files, type Mistake, repository, withMistake } from "./Files.ts"
import * as SystemdUnit from "./SystemdUnit.ts"

const { path } = SystemdUnit

const mistakes: ReadonlyArray<Mistake> = [
  [path, "KillSignal=SIGTERM", "KillSignl=SIGTERM", "KillSignl is no directive of Service"],
  [path, "Restart=on-failure", "Restart=always", "Restart is not on-failure"],
  [path, "RestartPreventExitStatus=78", "RestartPreventExitStatus=1", "RestartPreventExitStatus is not 78"],
  [path, "KillSignal=SIGTERM", "KillSignal=SIGKILL", "KillSignal is not SIGTERM"],
  [path, "TimeoutStopSec=90", "TimeoutStopSec=60", "killed before it has drained"],
  [path, "svc-runtime %i $SVC_OPTIONS", "svc-runtime gateway", "svc-runtime gateway"],
  [path, "WorkingDirectory=/opt/svc-runtime", "WorkingDirectory=/opt", "the unit runs"],
  [path, "DynamicUser=yes", "User=root", "User is no directive"],
  [path, "StateDirectory=svc-runtime/%i\n", "", "StateDirectory is not svc-runtime/%i"],
  [path, "ProtectSystem=strict", "ProtectSystem=no", "ProtectSystem is not strict"],
  [path, "CapabilityBoundingSet=\n", "CapabilityBoundingSet=CAP_NET_ADMIN\n", "CapabilityBoundingSet is not"],
  [path, "LimitNOFILE=65536", "LimitNOFILE=1024", "too few files for connections"],
  [path, "EnvironmentFile=/etc/svc-runtime/common.env", "", "the variables come from nowhere"],
  [path, "LockPersonality=yes", "MemoryDenyWriteExecute=yes", "V8 could not compile"]
]

const analyze = spawnSync("systemd-analyze", ["--version"]).status === 0
if (!analyze) process.stderr.write("\n  SKIPPED: what systemd says of the unit: no systemd-analyze on the PATH\n")

/** What systemd says of the unit, with a program that exists here. */
const verified = (files: Files): string => {
  const folder = mkdtempSync(join(tmpdir(), "svc-test-unit-"))
  const unit = join(folder, "svc-runtime@gateway.service")
  writeFileSync(unit, files(path).replace("/opt/svc-runtime/node_modules/.bin/svc-runtime", process.execPath))
  const { stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", unit], { encoding: "utf8" })
  rmSync(folder, { recursive: true })
  return stderr
}

describe("the unit of systemd", () => {
  it.live("keeps its rules", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* SystemdUnit.problemsOf(repository), [])
    })
  )

  it.live.each(mistakes)("%s: a mistake is found: %s → %s", ([file, right, wrong, named]) =>
    Effect.gen(function* () {
      assert.include((yield* SystemdUnit.problemsOf(withMistake(file, right, wrong))).join("\n"), named)
    })
  )

  it.skipIf(!analyze)("is accepted by systemd, which names a wrong directive and a wrong value", () => {
    assert.strictEqual(verified(repository), "")
    assert.match(verified(withMistake(path, "KillSignal=", "KillSignl=")), /KillSignl/)
    assert.match(verified(withMistake(path, "KillSignal=SIGTERM", "KillSignal=SIGTRM")), /SIGTRM/)
  })
})

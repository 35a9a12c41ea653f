import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../../Eventually.ts"
import { repository } from "../Files.ts"
import * as Dockerfile from "./Dockerfile.ts"
import * as ImageContainer from "./ImageContainer.ts"
import * as ImageRoot from "./ImageRoot.ts"

/** An example of a guide, as somebody writes it who has the package. */
const asInstalled = (example: string): string =>
  repository(example)
    .replaceAll("../../src/messaging/index.ts", "svc-runtime/messaging")
    .replaceAll("../../src/index.ts", "svc-runtime")
    .replaceAll("./WorkerExample.ts", "./worker.ts")

const wanted = process.env["SVC_TEST_DEPLOY_ROOT"] === "1"

/** Plays each step of the Dockerfile, which takes minutes, and starts what comes of them. */
describe.skipIf(!wanted)("the image", () => {
  const state: { root?: ImageRoot.ImageRoot; container?: ImageContainer.ImageContainer } = {}

  const running = (): ImageContainer.ImageContainer => {
    if (state.container === undefined) throw new Error("the image was not played")
    return state.container
  }

  beforeAll(async () => {
    assert.strictEqual(process.getuid?.(), 0, "only root can play a Dockerfile")
    state.root = await ImageRoot.play(repository(Dockerfile.path))
    state.container = ImageContainer.start(state.root)
  }, 1_200_000)

  afterAll(async () => {
    state.container?.kill()
    await state.root?.remove()
  })

  it.live("starts its program as process 1, as its user, where nothing can be written, and is healthy", () =>
    Effect.gen(function* () {
      const { execute, output, program } = running()
      const check = Dockerfile.last(Dockerfile.imageOf(repository), "HEALTHCHECK")?.words ?? []
      const healthy = yield* eventually(
        Effect.sync(() => execute(check)),
        ({ code }) => code === 0,
        "60 seconds"
      )
      assert.match(healthy.said, /^200 \{"status":"ready"/)
      yield* eventually(Effect.sync(output), (said) => /^ {2}proxy +http:\/\/0\.0\.0\.0:8080$/m.test(said))
      assert.strictEqual(program(), "node --max-semi-space-size=64 /usr/local/bin/svc-runtime all")
      assert.match(execute(["cat", "/proc/1/status"]).said, /^Uid:\t65532\t65532\t65532\t65532$/m)
      for (const path of ["/app/new", "/tmp/new"]) assert.match(execute(["touch", path]).said, /Read-only file system/)
    })
  )

  it("has its commands, and neither package managers nor compilers nor what only development needs", () => {
    const { execute } = running()
    assert.match(execute(["svc-runtime", "--version"]).said, /svc-runtime v\d/)
    assert.include(execute(["svc-runtime", "audit", "verify"]).said, "This command needs a database: set DATABASE_URL.")
    for (const program of ["npm", "npx", "git", "python3", "gcc", "make", "curl"])
      assert.notStrictEqual(execute(["sh", "-c", `command -v ${program}`]).code, 0, program)
    const modules = join(state.root?.folder ?? "", "app/node_modules")
    assert.isTrue(existsSync(join(modules, "@effect/platform-node")))
    for (const name of ["typescript", "vitest", "node"]) assert.isFalse(existsSync(join(modules, name)), name)
    const large = spawnSync("du", ["-sm", modules], { encoding: "utf8" }).stdout
    assert.isBelow(Number.parseInt(large, 10), 200)
  })

  it.live("runs a module of tasks that a project mounts", () =>
    Effect.gen(function* () {
      const { root } = state
      assert.isDefined(root)
      const tasks = join(root.folder, "app/tasks")
      mkdirSync(tasks)
      for (const [name, example] of [
        ["mails.ts", "test/messaging/MailTasks.ts"],
        ["worker.ts", "test/messaging/WorkerExample.ts"]
      ] as const) {
        writeFileSync(join(tasks, name), asInstalled(example))
      }
      const container = yield* Effect.acquireRelease(
        Effect.sync(() => ImageContainer.start(root, ["all", "--tasks=tasks/mails.ts"])),
        ({ kill }) => Effect.sync(kill)
      )
      const said = yield* eventually(
        Effect.sync(container.output),
        (said) => /^ {2}status +http/m.test(said),
        "60 seconds"
      )
      assert.match(said, /^ {2}tasks +tasks\/mails\.ts$/m)
    })
  )

  it("ends with 0 after SIGTERM to process 1", async () => {
    const { output, stop } = running()
    assert.strictEqual(await stop(), 0)
    assert.include(output(), "The process is draining")
  })
})

import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { assert, describe, it } from "@effect/vitest"

/** Area → areas that it may import beside itself. The first area that a file lies in counts. */
const areas: ReadonlyArray<readonly [area: string, may: ReadonlyArray<string>]> = [
  ["src/services", []],
  ["src/http", ["src/services"]],
  ["src/gateway/model", ["src/services"]],
  // one runner: operators try out the very guardrails that requests go through
  ["src/guardrails", ["src/services", "src/gateway/model"]],
  ["src/messaging", ["src/services"]],
  ["src/status", ["src/services", "src/http", "src/messaging"]],
  ["src/graph", ["src/services", "src/messaging", "src/status"]],
  ["src/gateway", ["src/services", "src/guardrails"]],
  ["src/control", ["src/services", "src/http", "src/gateway/model", "src/guardrails"]],
  ["layers", ["src"]],
  ["src/main.ts", ["layers", "src/node-version.mjs"]],
  ["migrations", []]
]

/** Drivers open the doors, and doors are opened in layers alone. */
const driver = /^(amqplib|ioredis|undici|pg|@effect\/sql-pg|@electric-sql\/|node:https?$|node:net$|node:child_process$)/
/** The index loads every optional peer. */
const platformIndex = "@effect/platform-node"

const files = [...sources("src"), ...sources("layers"), ...sources("migrations")]

describe("the direction of imports", () => {
  it("points downwards only", () => {
    assert.deepStrictEqual(
      files.flatMap(({ file, imports }) => {
        const [area, may] = areaOf(file)
        return imports
          .filter((name) => name.startsWith("."))
          .map((name) => normalize(join(dirname(file), name)))
          .filter((target) => ![area, ...may].some((root) => target === root || target.startsWith(`${root}/`)))
          .map((target) => `${file} imports ${target}`)
      }),
      []
    )
  })

  it("keeps drivers out of programs", () => {
    assert.deepStrictEqual(
      files.flatMap(({ file, imports }) =>
        file.startsWith("src/")
          ? imports.filter((name) => driver.test(name)).map((name) => `${file} imports ${name}`)
          : []
      ),
      []
    )
  })

  it("takes platform-node by its submodules", () => {
    assert.deepStrictEqual(
      files.filter(({ imports }) => imports.includes(platformIndex)).map(({ file }) => file),
      []
    )
  })

  it("sees a wrong import when there is one", () => {
    const [area, may] = areaOf("src/control/keys/Keys.ts")
    assert.isFalse([area, ...may].some((root) => "src/gateway/limits/Limits.ts".startsWith(`${root}/`)))
    assert.isTrue(driver.test("@effect/sql-pg/PgPool") && driver.test("node:http"))
  })
})

function areaOf(file: string) {
  const found = areas.find(([area]) => file === area || file.startsWith(`${area}/`))
  if (found === undefined) throw new Error(`${file} lies in no area`)
  return found
}

function sources(root: string) {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => {
      const file = join(root, name)
      const imports = [...readFileSync(file, "utf8").matchAll(/(?:from|import) "([^"]+)"/g)].map(
        ([, name]) => name ?? ""
      )
      return { file, imports }
    })
}

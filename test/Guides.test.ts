import { existsSync, globSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { statusOf } from "../src/gateway/GatewayError.ts"
import { anchors, blocks, guide, guides, programs, read, root, rows, section, shown } from "./Guides.ts"

/** Files of a reader's own program. */
const ofReaders = new Set<string>(programs.map(({ file }) => file))

/** All code of the program. */
const sources = globSync("{src,layers}/**/*.ts", { cwd: root }).map(read).join("\n")

/** The code that reads environment variables. */
const environment = [
  "layers/Environment.ts",
  "layers/environment/SignInVariables.ts",
  "layers/environment/UnreadVariables.ts",
  "layers/commands/DeadLetterCommands.ts"
]
  .map(read)
  .join("\n")

const named = (text: string, pattern: RegExp): ReadonlyArray<string> => [
  ...new Set([...text.matchAll(pattern)].map(([, name]) => name ?? ""))
]

describe("the README", () => {
  it("is short", () => {
    assert.isAtMost(guide("README.md").split("\n").length, 250)
  })

  it("links to every guide", () => {
    const unlinked = [...guides.keys()].filter(
      (path) => path !== "README.md" && !guide("README.md").includes(`(${path}`)
    )
    assert.deepStrictEqual(unlinked, [])
  })
})

describe.each([...guides])("%s", (path, text) => {
  it("links to files and headings that exist", () => {
    const broken = named(text, /\]\(([^)\s]+)\)/g).filter((link) => {
      if (link.startsWith("https://")) return false
      const [file = "", anchor] = link.split("#")
      const target = file === "" ? path : normalize(join(dirname(path), file))
      if (!existsSync(join(root, target))) return true
      return anchor !== undefined && !anchors(read(target)).includes(anchor)
    })
    assert.deepStrictEqual(broken, [])
  })

  it("names files that exist", () => {
    const missing = named(text, /`([\w./-]+\.(?:ts|mjs))`/g).filter(
      (file) => !ofReaders.has(file) && !existsSync(join(root, file)) && !existsSync(join(root, dirname(path), file))
    )
    assert.deepStrictEqual(missing, [])
  })

  it("names members that are in the files that it names", () => {
    const missing = [...text.matchAll(/`([\w./-]+\.ts)` \(((?:`\w+`(?:, )?)+)\)/g)].flatMap(
      ([, file = "", members = ""]) => {
        const found = [file, join(dirname(path), file)].find((one) => existsSync(join(root, one)))
        return named(members, /`(\w+)`/g)
          .filter((member) => found === undefined || !new RegExp(`\\b${member}\\b`).test(read(found)))
          .map((member) => `${file} (${member})`)
      }
    )
    assert.deepStrictEqual(missing, [])
  })

  it("names metrics that exist", () => {
    const metrics = named(text, /\b((?:gateway|svc)_[a-z0-9_]{4,})\b/g).map((name) => name.replace(/_bucket$/, ""))
    assert.deepStrictEqual(
      metrics.filter((name) => !sources.includes(name)),
      []
    )
  })

  it("shows compiled programs only", () => {
    const known = programs.filter(({ guide }) => guide === path)
    // the clients of other people's packages
    const others = blocks(text, "ts").filter((block) => block.startsWith("import OpenAI"))
    assert.sameMembers([...blocks(text, "ts")], [...known.map(({ example }) => shown(example)), ...others])
  })
})

describe("the tables", () => {
  it("have every environment variable, and no other", () => {
    const pattern = /\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b/g
    const firstColumns = (table: string) => rows(table).map((row) => row.split("|")[1] ?? "")
    const listed = [
      ...firstColumns(section("layers/README.md", "## Environment variables")),
      ...firstColumns(section("src/gateway/README.md", "## Authentication").replace(/^.*?(?=\| variable)/s, ""))
    ]
    const inTables = named(listed.join("\n"), pattern)
    const withoutEffect = named(section("src/guardrails/README.md", "## HTTP guardrails"), /`([A-Z_]+)`/g)
    assert.sameMembers([...inTables, ...withoutEffect], [...named(environment, new RegExp(`"${pattern.source}"`, "g"))])
  })

  it("have every error code of the gateway, with its status", () => {
    const table = rows(section("src/gateway/README.md", "## Error responses"))
    const listed = table.flatMap((row) => {
      const [, statuses = "", codes = ""] = row.split("|")
      return named(codes, /`(\w+)`/g).map((code) => [code, statuses] as const)
    })
    assert.sameMembers(
      listed.map(([code]) => code),
      Object.keys(statusOf)
    )
    const statusByCode = new Map<string, number>(Object.entries(statusOf))
    assert.deepStrictEqual(
      listed.filter(([code, statuses]) => !statuses.includes(String(statusByCode.get(code)))),
      []
    )
  })
})

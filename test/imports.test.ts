import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { assert, describe, it } from "@effect/vitest"

interface Area {
  readonly path: string
  /** The areas that it may import beside itself. */
  readonly may: ReadonlyArray<string>
  /** Its folders, from the lowest up: each may import itself and those before it. `.`: the area's own folder. */
  readonly rooms: ReadonlyArray<string>
}

/** The folders of the portal's pages. Their order means nothing: a page imports nothing of another one. */
function pageFolders(): ReadonlyArray<string> {
  return readdirSync("src/portal/pages", { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice("src/portal/".length))
    .sort((a, b) => b.split("/").length - a.split("/").length || a.localeCompare(b))
}

const shared = ["src/services", "src/policy", "src/http", "src/state", "src/process", "src/live", "src/identity"]

const areas: ReadonlyArray<Area> = [
  { path: "src/services", may: [], rooms: ["."] },
  { path: "src/policy", may: [], rooms: ["routes", "facts", "."] },
  { path: "src/http", may: ["src/services", "src/policy"], rooms: ["."] },
  { path: "src/state", may: ["src/services", "src/policy"], rooms: [".", "limits"] },
  { path: "src/process", may: ["src/services", "src/policy"], rooms: ["."] },
  { path: "src/live", may: ["src/services"], rooms: ["."] },
  { path: "src/identity", may: ["src/services", "src/policy"], rooms: ["."] },
  // one runner: operators try out the very guardrails that requests go through
  {
    path: "src/guardrails",
    may: ["src/services", "src/policy", "src/state"],
    rooms: ["detect/lexing", "detect", "text", "redact", "stream", "."]
  },
  {
    path: "src/gateway",
    may: [...shared, "src/guardrails"],
    rooms: [
      "GatewayError.ts",
      "auth",
      "snapshot",
      "request",
      "limits",
      "usage",
      "telemetry",
      "forward",
      "forward/objects",
      "."
    ]
  },
  {
    path: "src/control",
    may: [...shared, "src/guardrails"],
    rooms: [
      ...["api/schema", "api/providers", "api/services", "api/keys", "api/limits", "api/policies", "api/usage"],
      ...["api/holder", "api"],
      ...[
        "store",
        "audit",
        "session",
        "operators",
        "http",
        "services",
        "usage",
        "policies",
        "keys",
        "keys/bulk",
        "limits"
      ],
      ...["providers", "holder"],
      ...["configuration", "upstream-ui", "sign-in", "portal", "system", "find", "tasks", "live"],
      ...["handlers", "handlers/keys", "handlers/policies", "handlers/providers", "handlers/services", "."]
    ]
  },
  {
    path: "src/messaging",
    may: ["src/services"],
    rooms: ["envelope", "observe", "control", "topology", "retry", "publish", "failure", "consume", "."]
  },
  {
    path: "src/status",
    may: ["src/services", "src/http", "src/live", "src/messaging"],
    rooms: [
      "store",
      "dead-letters",
      "payload",
      "jobs",
      "replay",
      "hub",
      "history",
      "stream",
      "queues",
      "tasks",
      "cancellations",
      "http",
      "."
    ]
  },
  { path: "src/graph", may: ["src/services", "src/messaging", "src/status"], rooms: ["observations", "draw", "."] },
  { path: "src/tasks", may: ["src/services", "src/messaging", "src/status", "src/graph"], rooms: ["."] },
  { path: "src/example", may: ["src/messaging", "src/tasks"], rooms: ["."] },
  { path: "src/index.ts", may: ["src/tasks"], rooms: ["."] },
  {
    path: "src/portal",
    // their types alone
    may: ["src/control/api", "src/policy", "src/state", "src/messaging", "src/status", "src/graph"],
    rooms: [
      ...["theme", "api", "address", "sign-in"],
      ...[
        "shared/foreign",
        "shared/links",
        "shared/words",
        "shared/fields",
        "shared/page",
        "shared/charts",
        "shared/snippets",
        "shared/keys",
        "shared/table",
        "shared/dialogs"
      ],
      ...[
        "shared/editor",
        "shared/usage",
        "shared/policy",
        "shared/diff",
        "shared/change",
        "shared/graph",
        "shared/tasks",
        "app/fallbacks",
        "app"
      ],
      ...pageFolders(),
      "."
    ]
  },
  {
    path: "layers",
    may: ["src", "migrations"],
    rooms: [
      ...["telemetry", "data", "journal", "drivers", "amqp", "broker-memory/queues", "broker-memory", "http"],
      ...["ioredis", "postgres", "redis-memory", "simulator", "environment", "portal", "."],
      ...[
        "testing/contract/law",
        "testing/contract/upstream",
        "testing/contract/broker",
        "testing/contract",
        "testing"
      ],
      ...["roles", "workers"],
      ...["commands/init/template", "commands/init", "commands"]
    ]
  },
  { path: "src/main.ts", may: ["layers", "src/node-version.mjs"], rooms: ["."] },
  { path: "migrations", may: [], rooms: ["."] }
]

/** Files that a room may have side by side; more hide what is there. */
const mostFiles = 20
const mostRules = 30

/** Drivers open the doors, and doors are opened in layers alone. */
const driver = /^(amqplib|ioredis|undici|pg|@effect\/sql-pg|@electric-sql\/|node:https?$|node:net$|node:child_process$)/
/** The index loads every optional peer. */
const platformIndex = "@effect/platform-node"

interface Source {
  readonly file: string
  /** Of all kinds: of values, of types alone, and those that load when they run. */
  readonly imports: ReadonlyArray<string>
  /** Those of values, which load with the file. */
  readonly loads: ReadonlyArray<string>
}

const files = [...sources("src"), ...sources("layers"), ...sources("migrations")]

describe("the rooms", () => {
  it("are all in the table, and each has files", () => {
    const found = new Set(files.map(({ file }) => pathOf(roomOf(file))))
    const listed = areas.flatMap((area) => area.rooms.map((_, place) => pathOf({ area, place })))
    assert.deepStrictEqual([...found].sort(), listed.sort())
  })

  it("hold as many files as can be seen at once", () => {
    const rooms = new Set(files.map(({ file }) => dirname(file)))
    rooms.delete("migrations")
    const crowded = [...rooms].filter((room) => {
      const { length } = readdirSync(room, { withFileTypes: true }).filter((entry) => entry.isFile())
      return length > (room === "src/policy" ? mostRules : mostFiles)
    })
    assert.deepStrictEqual(crowded, [])
  })
})

describe("the portal", () => {
  it("has pages that import nothing of each other", () => {
    const crossing = files.flatMap((source) => {
      const page = pageOf(source.file)
      if (page === undefined) return []
      const others = targetsOf(source).filter((target) => pageOf(target) !== undefined && pageOf(target) !== page)
      return others.map((target) => `${source.file} imports ${target}`)
    })
    assert.deepStrictEqual(crossing, [])
  })

  it("reads by useRead and useReadPages alone, which keep an error while they ask again", () => {
    const others = files
      .map(({ file }) => file)
      .filter((file) => isIn("src/portal", file) && file !== "src/portal/api/reads.ts")
      .filter((file) => /\buse(Infinite)?Query\b/.test(readFileSync(file, "utf8")))
    assert.deepStrictEqual(others, [])
  })

  it("loads nothing of the server: the types of its API are enough", () => {
    const loaded = files
      .filter(({ file }) => isIn("src/portal", file))
      .flatMap(({ file, loads }) => targetsOf({ file, imports: loads }))
      .filter((target) => !isIn("src/portal", target))
    assert.deepStrictEqual([...new Set(loaded)], [])
  })
})

describe("a role", () => {
  const programs: ReadonlyArray<readonly [program: string, files: ReadonlyArray<string>, not: RegExp]> = [
    [
      "that works on tasks",
      ["layers/roles/TaskRoles.ts"],
      /^src\/(gateway\/(?!GatewayError|telemetry\/AccessLog)|guardrails|control\/(?!http|api))|ControlApi/
    ],
    [
      "without the operator API",
      ["layers/roles/GatewayRoles.ts", "layers/roles/Proxy.ts"],
      /ControlA(pp|pi)|handlers\//
    ],
    [
      "without the proxy listener",
      ["layers/roles/GatewayRoles.ts", "layers/roles/OperatorApi.ts"],
      /^src\/gateway\/(?!GatewayError|telemetry\/AccessLog)/
    ],
    [
      "that is not known yet",
      ["src/main.ts"],
      /^layers\/(roles|amqp|postgres|ioredis)|^src\/(gateway|status|messaging)/
    ]
  ]

  it.each(programs)("%s loads nothing of what it does not have", (_, roots, not) => {
    assert.deepStrictEqual(
      loadedBy(roots).filter((file) => not.test(file)),
      []
    )
  })
})

describe("the direction of imports", () => {
  it("points downwards only", () => {
    assert.deepStrictEqual(files.flatMap(upward), [])
  })

  it("leads in no circle", () => {
    assert.deepStrictEqual(circles(files), [])
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
    const wrong = [
      { file: "src/control/keys/Keys.ts", imports: ["../../gateway/limits/Limits.ts"] },
      { file: "src/gateway/limits/UsageLimits.ts", imports: ["../forward/Forward.ts"] },
      { file: "src/gateway/request/Request.ts", imports: ["../ProxyApp.ts"] },
      { file: "src/policy/Policy.ts", imports: ["../state/Vault.ts"] }
    ]
    assert.lengthOf(wrong.flatMap(upward), wrong.length)
    const right = {
      file: "src/gateway/limits/UsageLimits.ts",
      imports: ["../GatewayError.ts", "../../policy/Limit.ts"]
    }
    assert.deepStrictEqual(upward(right), [])
    assert.isTrue(driver.test("@effect/sql-pg/PgPool") && driver.test("node:http"))
  })

  it("sees a circle when there is one", () => {
    const circle = [
      { file: "src/a/A.ts", imports: ["../b/B.ts"] },
      { file: "src/b/B.ts", imports: ["./C.ts"] },
      { file: "src/b/C.ts", imports: ["../a/A.ts"] },
      { file: "src/b/D.ts", imports: ["./B.ts"] }
    ]
    assert.deepStrictEqual(circles(circle), ["src/a/A.ts → src/b/B.ts → src/b/C.ts → src/a/A.ts"])
  })
})

interface Room {
  readonly area: Area
  readonly place: number
}

/** The room of a file: the longest of its area's paths that it lies under. */
function roomOf(file: string): Room {
  const area = areas.find(({ path }) => isIn(path, file))
  if (area === undefined) throw new Error(`${file} lies in no area`)
  const fitting = area.rooms
    .map((_, place) => ({ area, place }))
    .filter((room) => isIn(pathOf(room), file))
    .sort((a, b) => pathOf(b).length - pathOf(a).length)
  const [room] = fitting
  if (room === undefined) throw new Error(`${file} lies in no room of ${area.path}`)
  if (pathOf(room) !== file && pathOf(room) !== dirname(file)) throw new Error(`${dirname(file)} is not in the table`)
  return room
}

function pathOf({ area, place }: Room): string {
  return normalize(join(area.path, area.rooms[place] ?? "."))
}

function isIn(path: string, file: string): boolean {
  return file === path || file.startsWith(`${path}/`)
}

function targetsOf({ file, imports }: Pick<Source, "file" | "imports">): ReadonlyArray<string> {
  return imports.filter((name) => name.startsWith(".")).map((name) => normalize(join(dirname(file), name)))
}

/** The folder of the portal's page that a file belongs to. */
function pageOf(file: string): string | undefined {
  return /^src\/portal\/pages\/[^/]+/.exec(file)?.[0]
}

function upward(source: Pick<Source, "file" | "imports">): ReadonlyArray<string> {
  const { area, place } = roomOf(source.file)
  return targetsOf(source)
    .filter((target) => {
      if (!isIn(area.path, target)) return !area.may.some((path) => isIn(path, target))
      // folders of one page need no order, because files lead in no circle
      return roomOf(target).place > place && (pageOf(target) === undefined || pageOf(target) !== pageOf(source.file))
    })
    .map((target) => `${source.file} imports ${target}`)
}

/** Everything that loads with these files. */
function loadedBy(roots: ReadonlyArray<string>): ReadonlyArray<string> {
  const loads = new Map(files.map(({ file, loads }) => [file, targetsOf({ file, imports: loads })]))
  const seen = new Set<string>()
  const visit = (file: string): void => {
    if (seen.has(file)) return
    seen.add(file)
    for (const target of loads.get(file) ?? []) visit(target)
  }
  for (const root of roots) visit(root)
  return [...seen]
}

/** Each circle once, by the first of its files. */
function circles(sources: ReadonlyArray<Pick<Source, "file" | "imports">>): ReadonlyArray<string> {
  const targets = new Map(sources.map((source) => [source.file, targetsOf(source)]))
  const found: Array<string> = []
  const done = new Set<string>()
  const visit = (file: string, path: ReadonlyArray<string>): void => {
    const begun = path.indexOf(file)
    if (begun !== -1) found.push([...path.slice(begun), file].join(" → "))
    if (begun !== -1 || done.has(file)) return
    for (const target of targets.get(file) ?? []) visit(target, [...path, file])
    done.add(file)
  }
  for (const { file } of sources) visit(file, [])
  return found
}

function sources(root: string): ReadonlyArray<Source> {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => {
      const file = join(root, name)
      const text = readFileSync(file, "utf8")
      const names = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name ?? "")
      return {
        file,
        imports: names(/(?:from |import |import\()"([^"]+)"/g),
        loads: names(/^(?:import|export) (?!type )(?:[^"=;(]*? from )?"([^"]+)"/gm)
      }
    })
}

import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** The folder of the repository. */
export const root = fileURLToPath(new URL("..", import.meta.url))

/** A file of the repository, by its path there. */
export const read = (path: string): string => readFileSync(join(root, path), "utf8")

/** The README and the guides of the areas, by their paths. */
export const guides: ReadonlyMap<string, string> = new Map(
  [
    "README.md",
    ...globSync("{deploy,layers,src,test}/**/README.md", {
      cwd: root,
      exclude: ["**/node_modules/**", "**/template/**"]
    }).sort()
  ].map((path) => [path, read(path)])
)

/** The compiled programs that guides show, each with the name of the file that readers give it. */
export const programs = [
  { guide: "layers/README.md", example: "test/contract/VariantExample.ts", file: "broker.test.ts" },
  { guide: "layers/telemetry/README.md", example: "test/messaging/TracedClientExample.ts", file: "ask.ts" },
  { guide: "src/control/README.md", example: "test/control/ClientExample.ts", file: "onboard.ts" },
  { guide: "src/messaging/README.md", example: "test/messaging/WorkerExample.ts", file: "worker.ts" },
  { guide: "src/messaging/README.md", example: "test/messaging/WorkerProgram.ts", file: "run-worker.ts" },
  { guide: "src/messaging/README.md", example: "test/messaging/PublishProgram.ts", file: "publish.ts" },
  { guide: "src/messaging/README.md", example: "test/messaging/WorkerTest.test.ts", file: "worker.test.ts" },
  { guide: "src/messaging/README.md", example: "test/messaging/HandlerCheckExample.test.ts", file: "orders.test.ts" },
  { guide: "src/messaging/README.md", example: "test/messaging/WorkflowExample.ts", file: "reports.ts" },
  { guide: "src/messaging/README.md", example: "test/messaging/AggregationExample.ts", file: "books.ts" },
  { guide: "src/messaging/README.md", example: "test/messaging/MailTasks.ts", file: "mails.ts" },
  { guide: "src/status/README.md", example: "test/graph/ServerExample.ts", file: "server.ts" },
  { guide: "src/status/README.md", example: "test/graph/RecordedWorkerExample.ts", file: "recorded.ts" },
  { guide: "src/status/README.md", example: "test/graph/RecordedProgram.ts", file: "statuses.ts" }
] as const

/** A program as readers have it: it imports its neighbours by their names. */
export const shown = (example: string): string =>
  read(example).replaceAll(/"\.[\w./]*\/(\w+\.ts)"/g, (name, neighbour: string) => {
    const program = programs.find(({ example }) => example.endsWith(`/${neighbour}`))
    return program === undefined ? name : `"./${program.file}"`
  })

export const guide = (path: string): string => {
  const text = guides.get(path)
  if (text === undefined) throw new Error(`There is no guide ${path}`)
  return text
}

/** The headings of a text, without those that a block of code seems to have. */
export const headings = (text: string): ReadonlyArray<string> =>
  text
    .replace(/^```.*?^```$/gms, "")
    .split("\n")
    .filter((line) => /^#+ /.test(line))

/** The anchor that a code host gives a heading. */
const anchorOf = (heading: string): string =>
  heading
    .replace(/^#+ /, "")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-")

/** The anchors of a text. */
export const anchors = (text: string): ReadonlyArray<string> => headings(text).map(anchorOf)

/** The text under a heading, up to the next heading of the same level or a higher one. */
export const section = (path: string, heading: string): string => {
  const text = guide(path)
  const start = text.indexOf(`\n${heading}\n`)
  if (start === -1) throw new Error(`${path} has no section ${heading}`)
  const [level = ""] = heading.split(" ", 1)
  const below = text.slice(start + heading.length + 2)
  const end = below.search(new RegExp(`^#{1,${level.length}} `, "m"))
  return end === -1 ? below : below.slice(0, end)
}

/** The rows of the first table of a text, without its head. */
export const rows = (text: string): ReadonlyArray<string> => {
  const lines = text.split("\n")
  const start = lines.findIndex((line) => line.startsWith("| ---"))
  const table = lines.slice(start + 1)
  const end = table.findIndex((line) => !line.startsWith("|"))
  return end === -1 ? table : table.slice(0, end)
}

/** The blocks of code in a language. */
export const blocks = (text: string, language: string): ReadonlyArray<string> =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map(([, block]) => block ?? "")

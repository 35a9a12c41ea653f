import { readFileSync } from "node:fs"
import { relative } from "node:path"

/** The members that are read here of a report by `vitest --reporter=json`. */
interface Report {
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly status: string
    readonly assertionResults: ReadonlyArray<{ readonly fullName: string; readonly status: string }>
  }>
}

const [verb, ...paths] = process.argv.slice(2)
const reports = paths.map((path): Report => JSON.parse(readFileSync(path, "utf8")))

const filesOf = (report: Report) => report.testResults.map((file) => ({ ...file, name: relative(".", file.name) }))

if (verb === "failed") {
  for (const { name, status } of reports.flatMap(filesOf)) if (status === "failed") process.stdout.write(`${name}\n`)
} else {
  const [whole = [], again = []] = reports.map(filesOf)
  const anew = new Set(again.map(({ name }) => name))
  const failed = new Set(whole.filter(({ status }) => status === "failed").map(({ name }) => name))
  for (const { name, status } of again) {
    if (status === "passed" && failed.has(name))
      process.stdout.write(`FLAKY: ${name} failed beside the others and passed alone\n`)
  }
  const tests = [...whole.filter(({ name }) => !anew.has(name)), ...again].flatMap((file) => file.assertionResults)
  const count = (...statuses: ReadonlyArray<string>) => tests.filter(({ status }) => statuses.includes(status)).length
  const skipped = count("pending", "skipped", "todo")
  process.stdout.write(`${count("passed")} passed, ${count("failed")} failed, ${skipped} skipped\n`)
}

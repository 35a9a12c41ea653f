import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import { type CliOptions, doorsUsedBy, problemsOf, roles, workersOf } from "../../layers/DoorOptions.ts"

const options = (more: Partial<CliOptions>): CliOptions => ({
  role: "gateway",
  database: Option.none(),
  redis: Option.none(),
  broker: Option.none(),
  upstream: Option.none(),
  tasks: Option.none(),
  data: Option.none(),
  example: false,
  workers: Option.none(),
  ...more
})
const urls = { databaseUrl: Option.some("d"), redisUrl: Option.some("r"), rabbitmqUrls: Option.some("b") }

describe("tasks", () => {
  it("make the roles all and control use the broker, which control shares with other processes", () => {
    for (const role of ["all", "control"] as const) {
      assert.notInclude(doorsUsedBy(options({ role })), "broker")
      assert.include(doorsUsedBy(options({ role, example: true })), "broker")
    }
    const withoutBroker = { ...urls, rabbitmqUrls: Option.none() }
    assert.deepStrictEqual(problemsOf(options({ role: "control" }), withoutBroker), [])
    assert.match(
      problemsOf(options({ role: "control", example: true }), withoutBroker).join(),
      /^The role control shares its broker .* Set RABBITMQ_URL/
    )
  })
})

describe("workers", () => {
  it("are those of the flag, else of the variable, else there is one process", () => {
    const [flag, variable] = [Option.some(3), Option.some(2)]
    assert.strictEqual(workersOf(options({ workers: flag }), { workers: variable }), 3)
    assert.strictEqual(workersOf(options({}), { workers: variable }), 2)
    assert.strictEqual(workersOf(options({}), { workers: Option.none() }), 1)
  })

  it("are for the role gateway: the flag is refused elsewhere, and the variable has no effect", () => {
    for (const role of roles.filter((one) => one !== "gateway")) {
      const tasks = role === "all" || role === "control" ? Option.none() : Option.some("./tasks.ts")
      const [problem, ...others] = problemsOf(options({ role, tasks, workers: Option.some(2) }), urls)
      assert.match(problem ?? "", new RegExp(`^The role ${role} runs in one process: --workers .* Remove --workers`))
      assert.deepStrictEqual(others, [])
      assert.strictEqual(workersOf(options({ role }), { workers: Option.some(2) }), 1)
    }
  })

  it("need servers that processes can share", () => {
    const problems = problemsOf(options({ workers: Option.some(2) }), {
      ...urls,
      databaseUrl: Option.none(),
      redisUrl: Option.none()
    })
    assert.deepStrictEqual(
      problems.map((problem) => /shares its (\w+) .* Set (\w+)/.exec(problem)?.slice(1)),
      [
        ["database", "DATABASE_URL"],
        ["Redis", "REDIS_URL"]
      ]
    )
  })
})

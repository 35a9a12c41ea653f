import { assert, describe, it } from "@effect/vitest"
import { runBulk } from "../../../src/portal/pages/keys/bulk/runBulk.ts"
import { secretsFile } from "../../../src/portal/pages/keys/bulk/secretsFile.ts"
import { bodyOf, draftFor, stepOfField } from "../../../src/portal/pages/keys/wizard/draft.ts"
import { reviewed } from "../../../src/portal/pages/keys/wizard/reviewed.ts"
import { readCurl } from "../../../src/portal/pages/policies/simulate/curl.ts"
import { changesOf } from "../../../src/portal/shared/policy/auditedFields.ts"
import type { PolicyField } from "../../../src/portal/shared/policy/fields.ts"
import { changedValues, fieldText, groupsOf, restrictingOf } from "../../../src/portal/shared/policy/fields.ts"
import { flatFields } from "../../../src/portal/shared/policy/flatFields.ts"
import { csvOf } from "../../../src/portal/shared/table/rowsCsv.ts"

describe("A command of curl", () => {
  it("is read with its method, its path and its body, whatever its host", () => {
    assert.deepStrictEqual(
      readCurl(`curl -s http://127.0.0.1:8080/v1/responses?x=1 \\
        -H "authorization: Bearer $KEY" --data '{"model":"gpt-5","input":"it'\\''s"}'`),
      { method: "POST", path: "/v1/responses?x=1", body: `{"model":"gpt-5","input":"it's"}` }
    )
    assert.deepStrictEqual(readCurl("curl $BASE/v1/models"), { method: "GET", path: "/v1/models", body: undefined })
    assert.deepStrictEqual(readCurl(`curl -XPUT --url=https://a.example/b -d "{\\"a\\": \\"\\$1\\"}" -m 5 -v`), {
      method: "PUT",
      path: "/b",
      body: `{"a": "$1"}`
    })
  })

  it("is refused with the reason", () => {
    assert.strictEqual(readCurl("wget http://a.example/"), "Paste a command that begins with curl.")
    assert.strictEqual(readCurl("curl 'http://a.example/"), "A quote is not closed.")
    assert.strictEqual(readCurl("curl -X POST"), "The command has no address.")
    assert.strictEqual(readCurl("curl localhost"), "localhost is not an address.")
    assert.strictEqual(readCurl("x".repeat(100_001)), "The command is too long.")
  })
})

describe("A bulk action", () => {
  it("goes on after a failure, and says why it failed", async () => {
    const seen: Array<number> = []
    const results = await runBulk(
      ["a", "b", "c"],
      async (id) => {
        if (id === "b") throw new Error("no")
        return id
      },
      ({ length }) => void seen.push(length),
      new AbortController().signal
    )
    assert.deepStrictEqual(seen, [1, 2, 3])
    assert.sameDeepMembers(
      [...results],
      [
        { id: "a", done: "a", failure: undefined },
        { id: "b", done: undefined, failure: "no" },
        { id: "c", done: "c", failure: undefined }
      ]
    )
  })

  it("does not begin what is left once it is stopped", async () => {
    const stopper = new AbortController()
    const begun: Array<string> = []
    const results = await runBulk(
      Array.from({ length: 50 }, (_, place) => String(place)),
      async (id) => {
        begun.push(id)
        stopper.abort()
      },
      () => {},
      stopper.signal
    )
    assert.strictEqual(results.length, begun.length)
    assert.isBelow(begun.length, 5)
  })
})

describe("The file of new secrets", () => {
  it("has a row for each key, and no cell that a spreadsheet would compute", () => {
    const key = { prefix: "rk_live_1", project: null, secret: "rk_live_1234", oldSecretWorksUntil: null }
    assert.strictEqual(
      secretsFile([
        { ...key, name: '=HYPERLINK("http://evil.example")' },
        { ...key, name: "ada, laptop", project: "Search" }
      ]),
      [
        "name,prefix,project,secret,old_secret_works_until",
        `"'=HYPERLINK(""http://evil.example"")",rk_live_1,,rk_live_1234,`,
        `"ada, laptop",rk_live_1,Search,rk_live_1234,`,
        ""
      ].join("\n")
    )
  })
})

describe("The rows of a table as a file", () => {
  it("have the columns that are shown, and a last line where there are more", () => {
    const rows = [
      { id: "1", cost: 5, key: { name: '=HYPERLINK("x")' }, message: "two\nlines, and more" },
      { id: "2", cost: null, key: null, message: "-1" }
    ]
    type Row = (typeof rows)[number]
    assert.strictEqual(
      csvOf(
        rows,
        [
          { csv: ({ message }: Row) => ({ message }) },
          {},
          { csv: ({ cost, key }: Row) => ({ cost, key_name: key?.name }) }
        ],
        "There are more."
      ),
      ["message,cost,key_name", `"two\nlines, and more",5,"'=HYPERLINK(""x"")"`, "'-1,,", "There are more."].join(
        "\r\n"
      )
    )
  })

  it("have all that the API says, under its names, and no cell that a spreadsheet would compute", () => {
    assert.strictEqual(
      csvOf([
        { id: "1", policy: { rpm_limit: 5, allowed_models: ["a", "b"] }, disabled: false, name: "=1+1" },
        { id: "2", policy: { rpm_limit: null }, spend: 0.5 }
      ]),
      ["id,policy.rpm_limit,policy.allowed_models,disabled,name,spend", "1,5,a b,false,'=1+1,", "2,,,,,0.5"].join(
        "\r\n"
      )
    )
  })
})

describe("The draft of a key", () => {
  it("sends only what was filled in, and finds the step of a refused field", () => {
    assert.deepStrictEqual(bodyOf(draftFor(undefined)), { owner_type: "individual", preset: "developer" })
    assert.deepStrictEqual(
      bodyOf({ ...draftFor("p"), name: " ada ", preset: null, tags: ["a"], policy: { rpm_limit: 5 } }),
      { name: "ada", tags: ["a"], owner_type: "project", project_id: "p", policy: { rpm_limit: 5 } }
    )
    assert.deepStrictEqual(
      ["owner_email", "policy.rpm_limit", "guardrail_policy", "unknown", undefined].map(stepOfField),
      [0, 2, 3, undefined, undefined]
    )
  })
})

describe("The fields of a policy", () => {
  const field = (name: string, kind: "count" | "dollars" | "names" = "count", unrestricted: null | boolean = null) => ({
    field: name,
    help: "",
    kind,
    choices: null,
    minimum: null,
    maximum: null,
    unrestricted
  })

  it("are grouped, and one that is new to the portal is shown too", () => {
    const groups = groupsOf([field("rpm_limit"), field("deny"), field("something_new")])
    assert.deepStrictEqual(
      groups.map(({ fields, label }) => [label, fields.map((one) => one.field)]),
      [
        ["Limits and budgets", ["rpm_limit"]],
        ["Access", ["deny"]],
        ["Each request", ["something_new"]]
      ]
    )
  })

  it("restrict something, differ, and are written in words", () => {
    const policy = { rpm_limit: null, allowed_models: ["a"], daily_budget_usd: 0.5 }
    const fields = [field("rpm_limit"), field("allowed_models", "names"), field("daily_budget_usd", "dollars")]
    assert.deepStrictEqual(restrictingOf(fields, policy), { allowed_models: ["a"], daily_budget_usd: 0.5 })
    assert.deepStrictEqual(changedValues(policy, { rpm_limit: null, daily_budget_usd: 1 }), { daily_budget_usd: 1 })
    assert.deepStrictEqual(
      fields.map((one, place) => fieldText(one, Object.values(policy)[place])),
      ["not restricted", "a", "$0.5"]
    )
    assert.deepStrictEqual(flatFields({ a: { b: 1, c: {} }, d: [1] }), { "a.b": 1, "a.c": {}, d: [1] })
  })
})

describe("An audit event in a line", () => {
  it("says what changed, from which value to which", () => {
    const before = { name: "a", policy: { rpm_limit: 60, models: ["gpt-5"], policy_version: 1 }, updated_at: "1" }
    const after = { name: "a", policy: { rpm_limit: null, models: ["gpt-5"], policy_version: 2 }, updated_at: "2" }
    assert.deepStrictEqual(changesOf(before, after), {
      told: [{ name: "rpm_limit", before: "60", after: "not set" }],
      others: 0
    })
    assert.deepStrictEqual(changesOf({ a: 1, b: true, c: 1, d: 1 }, { a: 2, b: false, c: 2 }), {
      told: [
        { name: "a", before: "1", after: "2" },
        { name: "b", before: "yes", after: "no" }
      ],
      others: 2
    })
  })

  it("tells a list that allows nothing from none, counts objects, and cuts what is long", () => {
    const [none] = changesOf({ models: null }, { models: [] }).told
    assert.deepStrictEqual([none?.before, none?.after], ["not set", "none"])
    const [rules] = changesOf({ rules: [{ a: 1 }] }, { rules: [{ a: 1 }, { b: 2 }] }).told
    assert.deepStrictEqual([rules?.before, rules?.after], ["1 entry", "2 entries"])
    const [long] = changesOf({ name: "👩".repeat(500) }, { name: "" }).told
    assert.deepStrictEqual([long?.before, long?.after], [`${"👩".repeat(40)}…`, "empty"])
  })

  it("names the place of fields with the same name", () => {
    const { told } = changesOf(
      { policy: { rpm_limit: 1 }, shared: { rpm_limit: 1 } },
      { policy: { rpm_limit: 2 }, shared: { rpm_limit: 2 } }
    )
    assert.deepStrictEqual(
      told.map(({ name }) => name),
      ["policy.rpm_limit", "shared.rpm_limit"]
    )
  })

  it("says nothing of what was made, deleted, or only touched", () => {
    const nothing = { told: [], others: 0 }
    assert.deepStrictEqual(changesOf(null, { a: 1 }), nothing)
    assert.deepStrictEqual(changesOf({ a: 1 }, null), nothing)
    assert.deepStrictEqual(changesOf({ updated_at: "1" }, { updated_at: "2", granted: null }), nothing)
  })
})

describe("the review of a new key", () => {
  const field = (name: string, kind: PolicyField["kind"]): PolicyField => ({
    field: name,
    kind,
    help: "",
    choices: null,
    minimum: null,
    maximum: null,
    unrestricted: null
  })

  it("has what the preset restricts and what differs from it, in words", () => {
    const fields = [field("allowed_models", "names"), field("rpm_limit", "count"), field("daily_budget_usd", "dollars")]
    const base = { rpm_limit: 60, daily_budget_usd: 5 }
    assert.deepStrictEqual(reviewed(fields, base, { ...base, rpm_limit: 3, allowed_models: ["gpt-4o*", "claude*"] }), [
      ["allowed_models", "gpt-4o*, claude* (the preset: not restricted)"],
      ["rpm_limit", "3 (the preset: 60)"],
      ["daily_budget_usd", "$5"]
    ])
    assert.deepStrictEqual(reviewed(fields, {}, {}), [["All fields", "not restricted"]])
  })
})

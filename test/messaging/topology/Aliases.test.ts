import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { SettingsError } from "../../../src/messaging/envelope/Errors.ts"
import { ContractAliasConfig } from "../../../src/messaging/topology/Aliases.ts"

const none = new ContractAliasConfig()
const attempt = new ContractAliasConfig({
  field_aliases: { task_id: " attempt_id ", service: "" },
  http_aliases: { task_id: "attemptId" }
})

describe("contract aliases", () => {
  it("bring documentId in as task_id without any configuration, and never out", () => {
    assert.deepStrictEqual(none.inbound({ documentId: "d", a: 1 }), { task_id: "d", a: 1 })
    assert.deepStrictEqual(none.outbound({ task_id: "d" }), { task_id: "d" })
    const http = new ContractAliasConfig({ http_aliases: { task_id: "id" } })
    assert.deepStrictEqual(http.outbound({ task_id: "d" }), { task_id: "d" })
  })

  it("know documentId no more when task_id has an alias of its own", () => {
    assert.deepStrictEqual(attempt.inbound({ documentId: "d", attempt_id: "a" }), { documentId: "d", task_id: "a" })
  })

  it("let the canonical name win, and remove the other", () => {
    assert.deepStrictEqual(attempt.inbound({ task_id: "t", attempt_id: "a" }), { task_id: "t" })
  })

  it("make a task id a text", () => {
    assert.deepStrictEqual(none.inbound({ documentId: 17 }), { task_id: "17" })
    assert.deepStrictEqual(none.inbound({ task_id: null }), { task_id: null })
  })

  it("rename the top level alone", () => {
    const payload = { attempt_id: "inside", documentId: "inside" }
    assert.deepStrictEqual(attempt.inbound({ attempt_id: "a", payload }), { task_id: "a", payload })
    assert.deepStrictEqual(attempt.outbound({ task_id: "t", meta: { task_id: "inside" } }), {
      meta: { task_id: "inside" },
      attempt_id: "t"
    })
  })

  it("go to the end of the object, and leave null under its own name", () => {
    assert.deepStrictEqual(Object.keys(attempt.outbound({ task_id: "t", status: "s" })), ["status", "attempt_id"])
    assert.deepStrictEqual(attempt.outbound({ task_id: null }), { task_id: null })
  })

  it("give HTTP and bodies names of their own", () => {
    assert.strictEqual(attempt.httpName("task_id"), "attemptId")
    assert.strictEqual(attempt.fieldName("task_id"), "attempt_id")
    const fieldOnly = new ContractAliasConfig({ field_aliases: { task_id: "job" } })
    assert.strictEqual(fieldOnly.httpName("task_id"), "job")
    assert.strictEqual(none.httpName("task_id"), "task_id")
    assert.strictEqual(attempt.fieldName("service"), "service")
  })

  it("leave alone what is no object", () => {
    assert.strictEqual(none.inbound(5), 5)
    assert.deepStrictEqual(none.inbound([1]), [1])
  })

  it.each([
    [{ task_id: "payload" }, "field_aliases.task_id"],
    [{ task_id: "id", service: "id" }, "field_aliases.service"],
    [{ own: "other", other: "third" }, "field_aliases.own"]
  ])("are refused where a name would mean two things: %j", (field_aliases, field) => {
    assert.throws(() => new ContractAliasConfig({ field_aliases }), SettingsError, field)
  })

  it("come back as they went", () => {
    const aliases = new ContractAliasConfig({
      field_aliases: { task_id: "attempt_id", correlation_id: "trace", status: "state", task_type: "kind" }
    })
    const names = ["task_id", "correlation_id", "status", "task_type", "payload", "other", "__proto__"]
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), fc.oneof(fc.string(), fc.constant(null))), (given) => {
        assert.deepStrictEqual(aliases.inbound(aliases.outbound(given)), { ...given })
      })
    )
  })
})

import { assert, describe, it } from "@effect/vitest"
import { typedTwice, unreadable } from "../../../src/gateway/request/BodyLabels.ts"

const json = (parameters: string) => ["Content-Type", `application/json${parameters}`]

describe("what the headers of a body say of it", () => {
  it.each([
    [[]],
    [json("")],
    [json("; charset=utf-8")],
    [json(';charset="UTF-8"')],
    [json("; charset=us-ascii; profile=x")],
    [[...json(""), "content-encoding", "identity"]]
  ])("%j: it can be read", (headers) => {
    assert.isUndefined(unreadable(headers))
    assert.isUndefined(typedTwice(headers))
  })

  it.each([
    [json("; charset=utf-7"), /UTF-8/],
    [json("; charset=UTF-16LE"), /UTF-8/],
    [json("; Charset = gbk"), /UTF-8/],
    [json("; charset=utf-8; charset=utf-7"), /UTF-8/],
    [json("; charset*=utf-8''utf-7"), /UTF-8/],
    [json('; x=";charset=utf-7"'), /UTF-8/],
    [json("; charset="), /UTF-8/],
    [[...json(""), "content-encoding", "gzip"], /content-encoding/],
    [[...json(""), "content-encoding", "identity", "Content-Encoding", "br"], /content-encoding/],
    [[...json(""), "content-encoding", "identity, deflate"], /content-encoding/]
  ] as const)("%j: some upstream reads it otherwise", (headers, said) => {
    assert.match(unreadable(headers) ?? "", said)
  })

  it("a content type that stands there twice says nothing", () => {
    assert.isDefined(typedTwice([...json(""), "content-type", "text/plain"]))
    assert.isDefined(typedTwice([...json(""), ...json("")]))
  })
})

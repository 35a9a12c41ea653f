import { assert, describe, it } from "@effect/vitest"
import { duplicateContentType, unreadableEncoding } from "../../../src/gateway/request/ContentTypes.ts"

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
    assert.isUndefined(unreadableEncoding(headers))
    assert.isUndefined(duplicateContentType(headers))
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
    assert.match(unreadableEncoding(headers) ?? "", said)
  })

  it("a content type that stands there twice says nothing", () => {
    assert.isDefined(duplicateContentType([...json(""), "content-type", "text/plain"]))
    assert.isDefined(duplicateContentType([...json(""), ...json("")]))
  })
})

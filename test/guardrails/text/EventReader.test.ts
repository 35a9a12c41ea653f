import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { EventReader, type EventText } from "../../../src/guardrails/text/EventReader.ts"
import { maxLanes } from "../../../src/guardrails/text/Lanes.ts"
import { textRoutes } from "../../../src/guardrails/text/Place.ts"
import { places } from "./Places.ts"

const chunk = (choice: object) => ({ object: "chat.completion.chunk", choices: [choice] })

const reading = (route: (typeof textRoutes)[number]) => {
  const reader = new EventReader(route)
  return (data: unknown, event?: string): EventText => {
    const found = reader.read(event, JSON.stringify(data))
    if (found === undefined) throw new Error("no JSON")
    return found
  }
}
const lanes = ({ spans }: EventText) => spans.map(({ lane, role }) => `${role} of ${lane}`)

describe("lanes of chat streams", () => {
  it("are named by choice, and tool arguments by tool", () => {
    const read = reading("chat")
    assert.deepStrictEqual(lanes(read(chunk({ index: 2, delta: { content: "a", refusal: "b" } }))), [
      "delta of choice 2 content",
      "delta of choice 2 refusal"
    ])
    const tool_calls = [{ index: 1, function: { arguments: "a" } }, { function: { arguments: "b" } }]
    assert.deepStrictEqual(lanes(read(chunk({ delta: { tool_calls }, index: 2 }))), [
      "delta of choice 2 tool 1 arguments",
      "delta of choice 2 tool 1 arguments"
    ])
    assert.deepStrictEqual(lanes(read(chunk({ delta: { function_call: { arguments: "a" }, reasoning: "b" } }))), [
      "delta of choice 0 function_call arguments",
      "delta of choice 0 reasoning"
    ])
  })

  it.each(["0", "0.0", "0e0", "-0", `0.${"0".repeat(40)}`])(
    "are the same for every spelling of an index: %s",
    (index) => {
      const read = new EventReader("chat").read(undefined, `{"choices":[{"index":${index},"delta":{"content":"a"}}]}`)
      assert.deepStrictEqual(read && lanes(read), ["delta of choice 0 content"])
    }
  )

  it("continue with parts of the content", () => {
    const content = [
      { type: "thinking", thinking: [{ type: "text", text: "a" }] },
      { type: "text", text: "b" }
    ]
    assert.deepStrictEqual(lanes(reading("chat")(chunk({ index: 0, delta: { content } }))), [
      "delta of choice 0 reasoning",
      "delta of choice 0 content"
    ])
  })

  it("end with the finish reason of their choice alone, whose event may hold the last piece", () => {
    const read = reading("chat")
    read(chunk({ index: 1, delta: { content: "a" } }))
    read(chunk({ index: 10, delta: { content: "a" } }))
    const last = read(chunk({ finish_reason: "stop", delta: { reasoning_content: "b" }, index: 1 }))
    assert.deepStrictEqual(last.ends, ["choice 1 content", "choice 1 reasoning_content"])
    assert.deepStrictEqual(read(chunk({ index: 10, delta: {}, finish_reason: "stop" })).ends, ["choice 10 content"])
    assert.deepStrictEqual(read(chunk({ index: 10, delta: {}, finish_reason: null })).ends, [])
  })

  it("all end with [DONE] and with an error", () => {
    assert.deepStrictEqual(new EventReader("chat").read(undefined, " [DONE]"), {
      spans: [],
      ends: "all",
      unreadable: []
    })
    assert.strictEqual(reading("chat")({ error: { message: "a" } }).ends, "all")
    assert.strictEqual(reading("chat")({ message: "a" }, "error").ends, "all")
  })
})

describe("lanes of responses streams", () => {
  const read = reading("responses")
  const numbers = { item_id: "msg_1", output_index: 1, content_index: 0 }

  it("are named by output and part, and end with the event that is done", () => {
    const piece = read({ ...numbers, delta: "a", type: "response.output_text.delta" })
    assert.deepStrictEqual(lanes(piece), ["delta of output 1 part 0"])
    assert.deepStrictEqual(piece.ends, [])
    const done = read({ ...numbers, text: "a", type: "response.output_text.done" })
    assert.deepStrictEqual(lanes(done), ["copy of output 1 part 0"])
    assert.deepStrictEqual(done.ends, ["output 1 part 0"])
  })

  it("have the same names in the copies of later events", () => {
    const output = [
      { type: "reasoning", summary: [{ type: "summary_text", text: "a" }] },
      {
        type: "message",
        content: [
          { type: "refusal", refusal: "b" },
          { text: "c", type: "output_text" }
        ]
      },
      { type: "function_call", arguments: "{}" },
      { type: "shell_call", action: { commands: ["ls"] } },
      { type: "shell_call_output", output: [{ stdout: "d", stderr: "e" }] },
      { type: "code_interpreter_call", code: "f" },
      { type: "custom_tool_call", input: "g" }
    ]
    const names = ["0 summary 0", "1 part 0", "1 part 1", "2 arguments", "3 command 0", "4 command 0 stdout"]
      .concat(["4 command 0 stderr", "5 code", "6 input"])
      .map((name) => `copy of output ${name}`)
    assert.deepStrictEqual(lanes(read({ type: "response.completed", response: { output } })), names)
    assert.deepStrictEqual(
      output.flatMap((item, output_index) => lanes(read({ type: "response.output_item.done", output_index, item }))),
      names
    )
  })

  it("end with their item, even where no event of the part was sent", () => {
    read({ ...numbers, delta: "a", type: "response.output_text.delta" })
    read({ ...numbers, output_index: 2, delta: "a", type: "response.function_call_arguments.delta" })
    const { ends } = read({ type: "response.output_item.done", output_index: 1, item: { type: "message" } })
    assert.deepStrictEqual(ends, ["output 1 part 0"])
  })

  it("all end with the response and with an error", () => {
    for (const type of ["response.completed", "response.incomplete", "response.failed", "error"])
      assert.strictEqual(read({ type }).ends, "all")
  })

  it("take the type from the event name if the data has none", () => {
    assert.deepStrictEqual(lanes(read({ ...numbers, refusal: "a" }, "response.refusal.done")), [
      "copy of output 1 part 0"
    ])
  })
})

describe("lanes of messages streams", () => {
  const read = reading("messages")

  it("are the blocks, from their start to their stop", () => {
    const start = read({ content_block: { text: "a", type: "text" }, index: 3, type: "content_block_start" })
    assert.deepStrictEqual(lanes(start), ["delta of block 3"])
    const piece = read({
      delta: { partial_json: "{", type: "input_json_delta" },
      index: 4,
      type: "content_block_delta"
    })
    assert.deepStrictEqual(lanes(piece), ["delta of block 4"])
    assert.deepStrictEqual(read({ type: "content_block_stop", index: 3 }).ends, ["block 3"])
    assert.strictEqual(read({ type: "message_delta", delta: { stop_reason: "end_turn" } }).ends, "all")
    assert.strictEqual(read({ type: "message_stop" }).ends, "all")
  })

  it("do not take up blocks that arrive whole", () => {
    const content_block = { type: "web_fetch_tool_result", content: { type: "web_fetch_result", url: "https://a.b" } }
    const start = read({ type: "content_block_start", index: 0, content_block })
    assert.deepStrictEqual(
      start.spans.map(({ place, role }) => [place, role]),
      [["tool result", "copy"]]
    )
  })
})

describe("events of any kind", () => {
  it("are refused exactly where JSON.parse refuses them", () => {
    const json = fc.json()
    const broken = fc.tuple(
      json,
      fc.nat(),
      fc.constantFrom("", '"', "\\", "}", "]", ",", ":", "\n", "0", "-", "e", "\\u00", ".")
    )
    fc.assert(
      fc.property(fc.constantFrom(...textRoutes), broken, (route, [text, position, inserted]) => {
        const at = position % (text.length + 1)
        const data = text.slice(0, at) + inserted + text.slice(at + (inserted === "" ? 1 : 0))
        assert.strictEqual(new EventReader(route).read(undefined, data) === undefined, !isJson(data))
      }),
      { numRuns: 2_000 }
    )
  })

  it("have the same texts in any order of their members", () => {
    for (const row of places) {
      if (row.delivery === "plain") continue
      const texts = (events: ReadonlyArray<unknown>) => {
        const reader = new EventReader(row.route)
        return events.map((event) => {
          const data = typeof event === "string" ? event : JSON.stringify(event)
          const found = reader.read(undefined, data)
          const spans = found?.spans.map(
            (span) => `${data.slice(span.start, span.end)} ${span.place} ${span.lane} ${span.role}`
          )
          const ends = found?.ends ?? []
          return [spans?.sort(), ends === "all" ? ends : [...ends].sort()]
        })
      }
      const events = row.example(["é a", "b"])
      assert.deepStrictEqual(texts(events.map(reversed)), texts(events))
    }
  })

  it.each([
    ["responses", (nested: unknown) => ({ type: "response.output_text.annotation.added", annotation: nested })],
    ["chat", (reasoning_details: unknown) => chunk({ delta: { reasoning_details } })],
    ["other", (nested: unknown) => ({ choices: [{ a: nested }] })]
  ] as const)("have short names of lanes also where the texts of %s nest deeply", (route, around) => {
    const wrap = ["a", "choices"].map((name) => (inner: unknown) => ({ [name]: [inner] }))
    for (const around1 of wrap) {
      let nested: unknown = "x"
      for (let depth = 0; depth < 1_000; depth++) nested = around1(nested)
      for (const { lane } of reading(route)(around(nested)).spans) assert.isBelow(lane.length, 512)
    }
  })

  it("end all lanes where a stream opens more than the limit", () => {
    const read = reading("chat")
    for (let index = 0; index < maxLanes; index++)
      assert.deepStrictEqual(read(chunk({ index, delta: { content: "a" } })).ends, [])
    assert.strictEqual(read(chunk({ index: -1, delta: { content: "a" } })).ends, "all")
    assert.deepStrictEqual(read(chunk({ index: 0, delta: { content: "a" } })).ends, [])
  })
})

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const reversed = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(reversed)
    : typeof value === "object" && value !== null
      ? Object.fromEntries(
          Object.entries(value)
            .reverse()
            .map(([name, member]) => [name, reversed(member)])
        )
      : value

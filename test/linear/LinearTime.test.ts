import { existsSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import * as Constructs from "./Constructs.ts"
import { excessiveGrowth } from "./Growth.ts"
import { readers } from "./Readers.ts"
import { texts } from "./Shapes.ts"
import { notForeign } from "./Unlisted.ts"

describe("every reader of foreign text takes linear time:", () => {
  it.each(readers.map((reader) => [reader.name, reader] as const))("%s", (_, { read, shapes, sizes }) => {
    const excessive = shapes.flatMap(({ name, of }) => {
      const growth = excessiveGrowth((length) => {
        const text = of(length)
        return () => read(text)
      }, sizes)
      return growth === undefined ? [] : [`${name}: four times the text takes ${growth.toFixed(1)} times as long`]
    })
    assert.deepStrictEqual(excessive, [])
  })
})

describe("no reader is left out:", () => {
  const covered = new Set(readers.flatMap(({ files }) => files))

  it("each source file that takes text apart has an entry among the readers, or a reason for having none", () => {
    const missing = Constructs.filesThatRead().filter((file) => !covered.has(file) && !notForeign.has(file))
    assert.deepStrictEqual(missing, [], "add a reader to Readers.ts, or a reason to Unlisted.ts")
  })

  it("no entry and no reason has outlived its file", () => {
    const reading = new Set(Constructs.filesThatRead())
    assert.deepStrictEqual(
      [...covered].filter((file) => !existsSync(file)),
      []
    )
    assert.deepStrictEqual(
      [...notForeign.keys()].filter((file) => covered.has(file) || !reading.has(file)),
      []
    )
  })

  it.each([
    ['const f = (s: string) => s.split(",")', true],
    ["const f = (s: string) => /a+$/.test(s)", true],
    ["const f = (s: string) => s.replace(/\\s{2,}/g, '')", true],
    ["return /[^/]*x/.exec(text)", true],
    ["const f = JSON.parse", true],
    ["const f = (s: string) => /^[*+]{1,8}\\+$/.test(s)", false],
    ['import { a } from "./JSON.parse.ts"\n// JSON.parse(text) /a+/', false],
    ["const half = (a: number, b: number) => a / 2 + b / 3 * 4 + 5 / 6", false]
  ])("%s", (source, reads) => assert.strictEqual(Constructs.reads(source), reads))
})

describe("what grows too fast is found:", () => {
  const planted = { longest: 8_192, cheapMs: 0.5 }
  const growthOn = (text: string, read: (text: string) => unknown) =>
    excessiveGrowth((length) => {
      const input = text.repeat(length / text.length)
      return () => read(`${input}!`)
    }, planted)

  it.each<[string, string, (text: string) => unknown]>([
    ["an expression that starts anew at each blank", " ", (text) => /[ \t]+$/.test(text)],
    ["a lazy run before an end", " ", (text) => /^x?:([^\r\n]*?)[ \t]*$/.test(`:${text}`)],
    [
      "a list that is searched for each item",
      "a,",
      (text) => {
        const seen: Array<number> = []
        for (const at of text.split(",").keys()) if (!seen.some((one) => one === at)) seen.push(at)
        return seen
      }
    ],
    [
      "a list that is copied for each item",
      "a,",
      (text) => {
        let items = text.split(",")
        while (items.length > 0) items = items.filter((_, at) => at > 0)
        return items
      }
    ]
    // beside other programs a single measurement may miss the growth of so short an input
  ])("%s", { retry: 4 }, (_, unit, read) => assert.isAbove(growthOn(unit, read) ?? 0, 8))

  it.each<[string, (text: string) => unknown]>([
    ["JSON.parse", (text) => JSON.parse(JSON.stringify([text]))],
    ["sorting", (text) => text.split("").sort().join("")],
    [
      "a slow look at each character",
      (text) => {
        let sum = 0
        for (let at = 0; at < text.length; at++)
          for (let more = 0; more < 200; more++) sum += text.charCodeAt(at) ^ more
        return sum
      }
    ]
  ])("%s does not", (_, read) => {
    for (const { of } of texts.slice(0, 8)) assert.isUndefined(growthOn(of(4), read))
  })
})

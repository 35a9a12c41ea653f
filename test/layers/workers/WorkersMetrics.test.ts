import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { merge } from "../../../layers/workers/WorkersMetrics.ts"

const page = (count: number) => `# HELP requests_total Requests
# TYPE requests_total counter
requests_total{path="/a{b} c"} ${count}
# TYPE seconds histogram
seconds_bucket{le="+Inf"} ${count}
seconds_sum ${count}
seconds_count ${count}
`

describe("metrics of several processes", () => {
  it("are one page: each family once, with a label for each worker's series and none for the supervisor's", () => {
    const own =
      "# TYPE memory_bytes gauge\nmemory_bytes 1\n# HELP requests_total Requests\n# TYPE requests_total counter\n"
    const pages = [
      { worker: undefined, text: own },
      { worker: "1", text: page(3) },
      { worker: "2", text: `${page(4)}# TYPE memory_bytes gauge\nmemory_bytes{} 5\n` }
    ]
    assert.strictEqual(
      merge(pages),
      `# TYPE memory_bytes gauge
memory_bytes 1
memory_bytes{worker="2"} 5
# HELP requests_total Requests
# TYPE requests_total counter
requests_total{worker="1",path="/a{b} c"} 3
requests_total{worker="2",path="/a{b} c"} 4
# TYPE seconds histogram
seconds_bucket{worker="1",le="+Inf"} 3
seconds_sum{worker="1"} 3
seconds_count{worker="1"} 3
seconds_bucket{worker="2",le="+Inf"} 4
seconds_sum{worker="2"} 4
seconds_count{worker="2"} 4
`
    )
  })

  it("are empty without a page", () => {
    assert.strictEqual(merge([]), "")
    assert.strictEqual(merge([{ worker: "1", text: "" }]), "")
  })

  it("keep every sample, once, below the comments of its family", () => {
    const family = fc.record({
      name: fc.constantFrom("a", "b_total", "c:d"),
      samples: fc.array(fc.tuple(fc.string({ unit: "grapheme" }), fc.nat()), { maxLength: 3 })
    })
    const pages = fc.array(fc.uniqueArray(family, { selector: ({ name }) => name }), { maxLength: 4 })
    const sampleOf = (name: string, worker: string, [label, value]: readonly [string, number]) =>
      `${name}{${worker}l=${JSON.stringify(label)}} ${value}`
    fc.assert(
      fc.property(pages, (generated) => {
        const merged = merge(
          generated.map((families, index) => ({
            worker: `${index}`,
            text: families
              .map(({ name, samples }) =>
                [`# TYPE ${name} counter`, ...samples.map((sample) => sampleOf(name, "", sample))].join("\n")
              )
              .join("\n")
          }))
        )
        const lines = merged.split("\n").slice(0, -1)
        const comments = lines.filter((line) => line.startsWith("# TYPE"))
        assert.lengthOf(comments, new Set(comments).size)
        let family = ""
        const found = lines.flatMap((line) => {
          if (!line.startsWith("#")) return [line]
          family = line.split(" ")[2] ?? ""
          return []
        })
        const expected = generated.flatMap((families, index) =>
          families.flatMap(({ name, samples }) => samples.map((sample) => sampleOf(name, `worker="${index}",`, sample)))
        )
        assert.sameMembers(found, expected)
        assert.isDefined(family)
        for (const [at, line] of lines.entries()) {
          const heading = lines.slice(0, at + 1).findLast((one) => one.startsWith("#"))
          if (!line.startsWith("#")) assert.isTrue(line.startsWith(`${heading?.split(" ")[2]}{`), merged)
        }
      })
    )
  })
})

import { buildExecutionGraph, type GraphEvidence } from "../../../src/graph/ExecutionGraph.ts"
import { executionGraphMermaid } from "../../../src/graph/Mermaid.ts"
import { deadLettered, evidence, observations, received, record, retried, statuses } from "../../graph/Evidence.ts"
import { median } from "../Statistics.ts"

export interface GraphFigures {
  readonly nodes: number
  readonly edges: number
  /** Milliseconds, from stored JSON to the graph: the median and the slowest of the rounds. */
  readonly build: { readonly median: number; readonly slowest: number }
  /** The same of its Mermaid text. */
  readonly mermaid: { readonly median: number; readonly slowest: number }
}

export const sizes: ReadonlyArray<number> = [100, 1_000, 10_000]

/** How long a graph takes that has about so many nodes: one task by itself, the worst case of every look-up. */
export const graphBuild = (size: number, rounds = 30): GraphFigures => {
  const given = evidenceOf(size)
  const graph = buildExecutionGraph(given)
  return {
    nodes: graph.nodes.length,
    edges: graph.edges.length,
    build: timed(rounds, () => buildExecutionGraph(given)),
    mermaid: timed(rounds, () => executionGraphMermaid(graph))
  }
}

/** Runs of a task, one after the other: received, said, failed, retried, failed again, dead-lettered, replayed. */
const evidenceOf = (size: number): GraphEvidence => {
  const task = "task-123"
  const starts = Array.from({ length: Math.ceil(size / 6) }, (_, run) => run * 10)
  return evidence({
    statuses: new Map([
      [
        task,
        statuses(task, ...starts.flatMap((at) => [["processing", at + 0.5] as const, ["failed", at + 6] as const]))
      ]
    ]),
    observations: new Map([
      [
        task,
        observations(
          ...starts.flatMap((at) => [
            received(at),
            retried(at + 1),
            received(at + 2, { retry_attempt: 1 }),
            deadLettered(at + 5)
          ])
        )
      ]
    ]),
    deadLetters: starts.map((at) => record(at + 5.002))
  })
}

const timed = (rounds: number, work: () => unknown) => {
  const times = Array.from({ length: rounds }, () => {
    const started = performance.now()
    work()
    return performance.now() - started
  })
  return { median: median(times), slowest: Math.max(...times) }
}
